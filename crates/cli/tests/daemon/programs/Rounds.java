import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;

/** Does as rounds.c does. */
public class Rounds {
    static volatile boolean end = false;

    static int computed() {
        int x = 1;
        for (int round = 0; round < 1_000_000; round++) {
            x = x * 1664525 + 1013904223;
        }
        return x;
    }

    static void work(int first, CountDownLatch begun) {
        begun.countDown();
        while (!end) {
            if (computed() != first) {
                System.exit(1);
            }
        }
    }

    public static void main(String[] words) throws InterruptedException {
        int first = computed();
        List<Thread> workers = new ArrayList<>();
        Scanner lines = new Scanner(System.in);
        for (int count = lines.nextInt(); count > 0; count = lines.nextInt()) {
            CountDownLatch begun = new CountDownLatch(count - workers.size());
            while (workers.size() < count) {
                Thread worker = new Thread(() -> work(first, begun));
                worker.start();
                workers.add(worker);
            }
            begun.await();
            System.out.println(count);
        }
        end = true;
        for (Thread worker : workers) {
            worker.join();
        }
        System.out.println(workers.size() + " " + Integer.toUnsignedString(first));
    }
}
