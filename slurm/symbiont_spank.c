/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * SPANK plugin: enrols each task of a job with the node's symbiontd.
 *
 * slurmstepd forks a task, holds it back, and calls slurm_spank_task_post_fork. The plugin opens a pidfd of
 * the task and sends it, with the job's number, user and class, to the daemon (method Enrol of
 * io.symbiont.Manager: varlink over a Unix socket, the pidfd by SCM_RIGHTS). It waits for the answer, so
 * that the task is managed from its first instruction, but not longer than `timeout`. Whatever goes wrong
 * is a line in slurmd's log and nothing else: a job neither fails nor waits because no daemon answers.
 *
 * plugstack.conf:
 *     optional /usr/lib/.../symbiont_spank.so [socket=PATH] [timeout=MILLISECONDS]
 * Users choose a class by --symbiont=CLASS of srun, sbatch and salloc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(symbiont, 1);

/* For `symbiont doctor`: the Slurm that this file was built for. */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
const char symbiont_built_for[] = "symbiont-spank built for Slurm " TEXT(SYMBIONT_SLURM_VERSION);

#define DEFAULT_SOCKET "/run/symbiont/symbiontd.sock"
#define DEFAULT_TIMEOUT_MS 200
#define MOST_TIMEOUT_MS 5000
#define MOST_NAME 64
/* As the interface bounds it. */
#define MOST_BYTES (64 * 1024)

static const char *const classes[] = { "normal", "latency", "batch" };
static char wanted_class[16] = "";

static int take_class(int val, const char *given, int remote)
{
	(void)val;
	for (size_t i = 0; given && i < sizeof classes / sizeof *classes; i++) {
		if (strcmp(given, classes[i]) == 0) {
			snprintf(wanted_class, sizeof wanted_class, "%s", given);
			return 0;
		}
	}
	/* On the node it is too late to refuse: the job runs in class normal. */
	if (remote)
		return 0;
	slurm_error("symbiont: --symbiont=%s: no such class; there are normal, latency and batch",
		    given ? given : "");
	return -1;
}

static struct spank_option class_option = {
	"symbiont",
	"CLASS",
	"what the job is run for, for symbiontd: normal, latency (a core of its own), "
	"batch (runs when no other thread wants the CPU)",
	1,
	0,
	take_class,
};

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
	(void)argc;
	(void)argv;
	spank_err_t error = spank_option_register(spank, &class_option);
	if (error != ESPANK_SUCCESS)
		slurm_verbose("symbiont: --symbiont is not offered: %s", spank_strerror(error));
	return 0;
}

static long long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Waits until a descriptor is ready; 0 if it is in time. */
static int await(int fd, short events, long long deadline)
{
	struct pollfd ready = { .fd = fd, .events = events };
	for (;;) {
		long long left = deadline - now_ms();
		if (left <= 0)
			return errno = ETIMEDOUT, -1;
		int got = poll(&ready, 1, (int)left);
		if (got > 0)
			return 0;
		if (got == 0)
			return errno = ETIMEDOUT, -1;
		if (errno != EINTR)
			return -1;
	}
}

static int send_call(int fd, const char *call, size_t length, int pidfd, long long deadline)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	memset(&control, 0, sizeof control);
	size_t sent = 0;
	while (sent < length) {
		struct iovec part = { .iov_base = (void *)(call + sent), .iov_len = length - sent };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
		if (sent == 0) {
			message.msg_control = control.space;
			message.msg_controllen = sizeof control.space;
			struct cmsghdr *header = CMSG_FIRSTHDR(&message);
			header->cmsg_level = SOL_SOCKET;
			header->cmsg_type = SCM_RIGHTS;
			header->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(header), &pidfd, sizeof(int));
		}
		ssize_t got = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (got > 0)
			sent += (size_t)got;
		else if (errno == EAGAIN && await(fd, POLLOUT, deadline) == 0)
			continue;
		else if (errno != EINTR)
			return -1;
	}
	return 0;
}

/* Reads the answer up to its zero byte, as far as there is room; longer ones are cut. */
static int receive_answer(int fd, char *answer, size_t room, long long deadline)
{
	size_t all = 0, kept = 0;
	while (all < MOST_BYTES) {
		char bytes[1024];
		ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (got == 0)
			return errno = ECONNRESET, -1;
		if (got < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN || await(fd, POLLIN, deadline) != 0)
				return -1;
			continue;
		}
		all += (size_t)got;
		for (ssize_t i = 0; i < got; i++) {
			if (kept + 1 < room)
				answer[kept++] = bytes[i];
			if (bytes[i] == '\0') {
				answer[kept] = '\0';
				return 0;
			}
		}
	}
	return errno = EMSGSIZE, -1;
}

/* 0 if the daemon manages the task; else errno says why, or `answer` does. */
static int enrol(const char *path, const char *call, size_t length, pid_t pid, long long deadline,
		 char *answer, size_t room)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof address.sun_path)
		return errno = ENAMETOOLONG, -1;
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int pidfd = -1, result = -1;
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd >= 0 && send_call(fd, call, length, pidfd, deadline) == 0)
			result = receive_answer(fd, answer, room, deadline);
	}
	int why = errno;
	if (pidfd >= 0)
		close(pidfd);
	close(fd);
	errno = why;
	return result;
}

/* The program's name, of characters that JSON takes as they are. */
static void name_of(spank_t spank, char *name, size_t room)
{
	int argc = 0;
	char **argv = NULL;
	const char *given = "job";
	if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0 && argv[0])
		given = argv[0];
	const char *slash = strrchr(given, '/');
	given = slash && slash[1] ? slash + 1 : given;
	size_t at = 0;
	for (; given[at] && at + 1 < room; at++) {
		char c = given[at];
		int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    strchr("._+-", c);
		name[at] = plain ? c : '_';
	}
	name[at] = '\0';
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char *argv[])
{
	const char *path = DEFAULT_SOCKET;
	long timeout_ms = DEFAULT_TIMEOUT_MS;
	pid_t pid = 0;
	uint32_t job = 0;
	uid_t user = 0;
	char name[MOST_NAME], call[512], class[32] = "", answer[512] = "";

	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "socket=", 7) == 0)
			path = argv[i] + 7;
		else if (strncmp(argv[i], "timeout=", 8) == 0)
			timeout_ms = strtol(argv[i] + 8, NULL, 10);
		else
			slurm_error("symbiont: plugstack.conf: '%s' is not understood: socket=PATH, "
				    "timeout=MILLISECONDS", argv[i]);
	}
	if (timeout_ms < 1 || timeout_ms > MOST_TIMEOUT_MS)
		timeout_ms = DEFAULT_TIMEOUT_MS;
	if (spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS)
		return 0;
	name_of(spank, name, sizeof name);
	if (*wanted_class)
		snprintf(class, sizeof class, ",\"class\":\"%s\"", wanted_class);
	int length = snprintf(call, sizeof call,
			      "{\"method\":\"io.symbiont.Manager.Enrol\",\"parameters\":{\"name\":\"%s\","
			      "\"linger\":true,\"job\":%u,\"user\":%u%s}}",
			      name, (unsigned)job, (unsigned)user, class);
	/* The zero byte ends the message. */
	if (length < 0 || (size_t)length >= sizeof call)
		return 0;
	long long deadline = now_ms() + timeout_ms;
	if (enrol(path, call, (size_t)length + 1, pid, deadline, answer, sizeof answer) != 0)
		slurm_verbose("symbiont: job %u: task %d is not managed: %s: %s", (unsigned)job, (int)pid,
			      path, strerror(errno));
	else if (strstr(answer, "\"error\""))
		slurm_info("symbiont: job %u: task %d is not managed: %s", (unsigned)job, (int)pid, answer);
	else
		slurm_debug("symbiont: job %u: task %d is managed", (unsigned)job, (int)pid);
	return 0;
}
