// SPDX-License-Identifier: Apache-2.0
/*
 * The CNI plugin that runtimes run: hands the call to the agent of this node and prints its answer. Everything else
 * is the agent's.
 *
 * To the agent: one line of JSON, the environment and the network configuration as texts. From it: a digit, the
 * exit status, and what to print. VERSION is answered here: it must not depend on an agent. So is STATUS on a node
 * that has been ready since it was started, as the file beside the socket says: a runtime that hears otherwise
 * calls the whole node unready, and its pods with it, while they go on without an agent.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/netplane/cni.sock"
#define READY_SUFFIX ".ready"
#define NEWEST "1.1.0"
#define VERSIONS \
	"{\"cniVersion\":\"" NEWEST "\",\"supportedVersions\":[\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n"

enum {
	TRY_AGAIN = 11,
	DECODE = 6,
	IO = 5,
	NOT_READY = 50
};
enum {
	MOST_BYTES = 1 << 20,
	DEADLINE_MS = 90 * 1000,
	PRINT_S = 5
};

struct text {
	char *data;
	size_t size;
};

static const char *version = NEWEST;
/* what it means that there is no agent */
static int without_agent = TRY_AGAIN;

static void put(struct text *text, const char *data, size_t size)
{
	text->data = realloc(text->data, text->size + size + 1);
	if (!text->data)
		abort();
	memcpy(text->data + text->size, data, size);
	text->size += size;
	text->data[text->size] = 0;
}

/* A JSON string. Bytes that are no UTF-8 pass as they are: the agent reads them as the mark for such. */
static void put_string(struct text *text, const char *data, size_t size)
{
	put(text, "\"", 1);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = data[i];
		char escaped[8];

		if (c == '"' || c == '\\')
			put(text, escaped, snprintf(escaped, sizeof(escaped), "\\%c", c));
		else if (c < 0x20)
			put(text, escaped, snprintf(escaped, sizeof(escaped), "\\u%04x", c));
		else
			put(text, &data[i], 1);
	}
	put(text, "\"", 1);
}

/* Prints, and ends: by SIGALRM when the runtime does not read. */
static void end(int status, const char *output, size_t size)
{
	alarm(PRINT_S);
	fwrite(output, 1, size, stdout);
	exit(fflush(stdout) ? 1 : status);
}

/* Prints an error as runtimes read it, and ends. */
static void fail(int code, const char *format, ...)
{
	char message[512], head[80];
	struct text text = {};
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	put(&text, head, snprintf(head, sizeof(head), "{\"cniVersion\":\"%.16s\",\"code\":%d,\"msg\":", version, code));
	put_string(&text, message, strlen(message));
	put(&text, "}\n", 2);
	end(1, text.data, text.size);
}

static const char *skip_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/* The text at this key of the outermost object; NULL when there is none, or it has escapes, which no path or
 * version needs. */
static char *find(const char *json, const char *key)
{
	size_t length = strlen(key);
	int depth = 0;

	for (const char *at = json; *at;) {
		const char *name = at + 1, *end;

		if (*at != '"') {
			depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
			at++;
			continue;
		}
		at = skip_string(at);
		if (depth != 1 || (size_t)(at - name) != length + 1 || strncmp(name, key, length))
			continue;
		at += strspn(at, " \t\r\n");
		if (*at != ':')
			continue;
		at++;
		at += strspn(at, " \t\r\n");
		if (*at != '"')
			continue;
		end = skip_string(at);
		if (memchr(at, '\\', end - at) || end - at < 2)
			return NULL;
		return strndup(at + 1, end - at - 2);
	}
	return NULL;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False when it is too late. */
static bool wait_for(int fd, short events, long deadline)
{
	struct pollfd wanted = {fd, events, 0};

	for (;;) {
		long left = deadline - now_ms();
		int ready = left > 0 ? poll(&wanted, 1, left) : 0;

		if (ready >= 0 || errno != EINTR)
			return ready > 0;
	}
}

static struct text read_all(int fd, long deadline)
{
	struct text all = {};
	char part[4096];

	put(&all, "", 0);
	while (all.size <= MOST_BYTES) {
		ssize_t size;

		if (!wait_for(fd, POLLIN, deadline))
			fail(TRY_AGAIN, "no answer within %d s", DEADLINE_MS / 1000);
		size = read(fd, part, sizeof(part));
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			fail(IO, "read: %s", strerror(errno));
		if (size == 0)
			return all;
		put(&all, part, size);
	}
	fail(DECODE, "more than %d bytes", MOST_BYTES);
	return all;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	/* also of a connect() that finds too many before it */
	struct timeval most = {.tv_sec = DEADLINE_MS / 1000};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail(IO, "socket: %s", strerror(errno));
	if (strlen(path) >= sizeof(address.sun_path))
		fail(DECODE, "socket: the path is longer than %zu bytes", sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail(without_agent, "the agent of this node does not listen at %s: %s", path, strerror(errno));
	return fd;
}

static bool has_been_ready(const char *socket_path)
{
	struct text path = {};

	put(&path, socket_path, strlen(socket_path));
	put(&path, READY_SUFFIX, strlen(READY_SUFFIX));
	return access(path.data, F_OK) == 0;
}

static void put_field(struct text *line, const char *name, const char *value)
{
	put(line, line->size ? "," : "{", 1);
	put_string(line, name, strlen(name));
	put(line, ":", 1);
	put_string(line, value ? value : "", value ? strlen(value) : 0);
}

static void send_line(int fd, const struct text *config, long deadline)
{
	static const char *const fields[][2] = {
		{"command", "CNI_COMMAND"}, {"containerId", "CNI_CONTAINERID"},
		{"netns", "CNI_NETNS"},     {"ifname", "CNI_IFNAME"},
		{"args", "CNI_ARGS"},       {"path", "CNI_PATH"},
	};
	struct text line = {};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		put_field(&line, fields[i][0], getenv(fields[i][1]));
	put_field(&line, "config", config->data);
	put(&line, "}\n", 2);
	for (size_t done = 0; done < line.size;) {
		ssize_t sent;

		if (!wait_for(fd, POLLOUT, deadline))
			fail(TRY_AGAIN, "the agent does not listen");
		sent = send(fd, line.data + done, line.size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EINTR && errno != EAGAIN)
			fail(TRY_AGAIN, "send: %s", strerror(errno));
		done += sent > 0 ? sent : 0;
	}
	free(line.data);
}

int main(void)
{
	const char *command = getenv("CNI_COMMAND");
	long deadline = now_ms() + DEADLINE_MS;
	struct text config, answer;
	char *path, *said;
	int fd;

	if (command && !strcmp(command, "VERSION"))
		end(0, VERSIONS, sizeof(VERSIONS) - 1);
	config = read_all(STDIN_FILENO, deadline);
	said = find(config.data, "cniVersion");
	if (said && strspn(said, "0123456789.") == strlen(said))
		version = said;
	path = find(config.data, "socket");
	path = path ? path : DEFAULT_SOCKET;
	if (command && !strcmp(command, "STATUS")) {
		if (has_been_ready(path))
			return 0;
		without_agent = NOT_READY;
	}
	fd = connect_to(path);
	send_line(fd, &config, deadline);
	answer = read_all(fd, deadline);
	if (answer.size == 0 || (answer.data[0] != '0' && answer.data[0] != '1'))
		fail(TRY_AGAIN, "the agent went before it had answered");
	end(answer.data[0] - '0', answer.data + 1, answer.size - 1);
}
