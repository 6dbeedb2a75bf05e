// Java: availableProcessors, and the parallelism of the common pool, which is sized at its first use.
import java.util.concurrent.ForkJoinPool;
import java.util.stream.IntStream;

public class Counts {
    static volatile long sink;

    static void say(String phase, String of, int count) {
        System.out.printf("{\"phase\": \"%s\", \"of\": \"%s\", \"count\": %d}%n", phase, of, count);
    }

    static void processors(String phase) {
        say(phase, "availableProcessors", Runtime.getRuntime().availableProcessors());
    }

    static void spin(long until) {
        long sum = 0;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 10000; i++) sum += i * sum + 1;
        }
        sink = sum;
    }

    static long later(long from, String seconds) {
        return from + (long) (Double.parseDouble(seconds) * 1e9);
    }

    public static void main(String[] args) {
        processors("start");
        long end = later(System.nanoTime(), args[0]);
        while (System.nanoTime() < end) {
            spin(Math.min(end, later(System.nanoTime(), "1")));
            processors("serial");
        }
        say("parallel", "commonPool", ForkJoinPool.commonPool().getParallelism());
        long until = later(System.nanoTime(), args[1]);
        IntStream.range(0, 8).parallel().forEach(i -> {
            processors("parallel");
            spin(until);
        });
        processors("end");
    }
}
