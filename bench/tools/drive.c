// SPDX-License-Identifier: Apache-2.0
// The measuring side: one command at a time. Layer: bench.
#include "traffic.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_SAMPLES = 4 << 20, WAIT_SECONDS = 3 };

struct command {
  struct sockaddr_storage to;
  socklen_t to_size;
  uint64_t duration_ns;
  int client_cpu, server_cpu;
};

static uint32_t samples[MOST_SAMPLES];

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

// 0 or more: a socket. Never waits longer than WAIT_SECONDS in any call.
static int connect_to(const struct command *c, int type) {
  struct timeval wait = {.tv_sec = WAIT_SECONDS};
  int fd = socket(c->to.ss_family, type | SOCK_CLOEXEC, 0);

  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  if (connect(fd, (const struct sockaddr *)&c->to, c->to_size)) {
    close(fd);
    return -1;
  }
  if (type == SOCK_STREAM) no_delay(fd);
  return fd;
}

static int open_as(const struct command *c, enum kind kind) {
  char message[MESSAGE] = {(char)kind, (char)c->server_cpu};
  int fd = connect_to(c, SOCK_STREAM);

  if (fd >= 0 && !send_all(fd, message, sizeof(message))) {
    close(fd);
    return -1;
  }
  return fd;
}

static void failed(const char *what) { printf("{\"error\":\"%s: %s\"}\n", what, strerror(errno)); }

static void print_samples(size_t count, uint64_t took_ns) {
  if (count == 0) {
    failed("no sample");
    return;
  }
  qsort(samples, count, sizeof(samples[0]), by_size);
  printf("{\"count\":%zu,\"p50_ns\":%u,\"p99_ns\":%u,\"per_second\":%.1f}\n", count, samples[count / 2],
         samples[count * 99 / 100], (double)count * 1e9 / (double)took_ns);
}

static void request_response(const struct command *c) {
  int fd = open_as(c, CONVERSATION);
  char message[MESSAGE] = {0};
  uint64_t start, now, end;
  size_t count = 0;

  if (fd < 0 || !receive_all(fd, message, sizeof(message))) {
    failed("connect");
    if (fd >= 0) close(fd);
    return;
  }
  start = now = clock_ns(CLOCK_MONOTONIC);
  end = start + c->duration_ns;
  while (now < end && count < MOST_SAMPLES) {
    uint64_t before = now;

    if (!send_all(fd, message, sizeof(message)) || !receive_all(fd, message, sizeof(message))) break;
    now = clock_ns(CLOCK_MONOTONIC);
    samples[count++] = (uint32_t)(now - before);
  }
  close(fd);
  print_samples(count, now - start);
}

static void connect_request_response(const struct command *c) {
  uint64_t start = clock_ns(CLOCK_MONOTONIC), now = start, end = start + c->duration_ns;
  char message[MESSAGE];
  size_t count = 0;

  while (now < end && count < MOST_SAMPLES) {
    uint64_t before = now;
    int fd = open_as(c, ONE_SHOT);
    bool whole = fd >= 0 && receive_all(fd, message, sizeof(message));

    if (fd >= 0) close(fd);
    if (!whole) {
      failed("connection");
      return;
    }
    now = clock_ns(CLOCK_MONOTONIC);
    samples[count++] = (uint32_t)(now - before);
  }
  print_samples(count, now - start);
}

static bool query(const struct command *c, struct report *report) {
  int fd = open_as(c, QUERY);
  bool done = fd >= 0 && receive_all(fd, report, sizeof(*report));

  if (fd >= 0) close(fd);
  return done;
}

static void datagrams_per_second(const struct command *c) {
  char payload[MESSAGE] = {0};
  struct iovec part = {payload, sizeof(payload)};
  struct mmsghdr messages[BATCH] = {0};
  struct report before, after;
  uint64_t start, now, end, sent = 0;
  int fd = connect_to(c, SOCK_DGRAM);

  for (int i = 0; i < BATCH; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
  if (fd < 0 || !query(c, &before)) {
    failed("query");
    if (fd >= 0) close(fd);
    return;
  }
  start = now = clock_ns(CLOCK_MONOTONIC);
  end = start + c->duration_ns;
  while (now < end) {
    int n = sendmmsg(fd, messages, BATCH, 0);

    if (n > 0) sent += (uint64_t)n;
    now = clock_ns(CLOCK_MONOTONIC);
  }
  usleep(5000);  // what is on its way arrives
  close(fd);
  if (!query(c, &after)) {
    failed("query");
    return;
  }
  printf("{\"sent\":%lu,\"count\":%lu,\"per_second\":%.1f}\n", sent, after.amount - before.amount,
         (double)(after.amount - before.amount) * 1e9 / (double)(now - start));
}

static void stream(const struct command *c) {
  static char chunk[STREAM_CHUNK];
  uint64_t start, end, cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  struct report report;
  double seconds;
  bool reported;
  int fd = open_as(c, STREAM);

  if (fd < 0) {
    failed("connect");
    return;
  }
  steady(fd, SO_SNDBUFFORCE);
  undisturbed(true);
  start = clock_ns(CLOCK_MONOTONIC);
  end = start + c->duration_ns;
  while (clock_ns(CLOCK_MONOTONIC) < end)
    if (send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) < 0) break;
  shutdown(fd, SHUT_WR);
  reported = receive_all(fd, &report, sizeof(report)) && report.amount > 0;
  seconds = (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
  undisturbed(false);
  if (!reported) {
    failed("report");
    close(fd);
    return;
  }
  cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu + report.cpu_ns;
  close(fd);
  printf("{\"bits_per_second\":%.0f,\"cpu_ns_per_bit\":%.6f}\n", (double)report.amount * 8 / seconds,
         (double)cpu / ((double)report.amount * 8));
}

static bool parse(char *line, struct command *c, char **verb) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found;
  char addr[64], port[8];
  static char word[8];
  int ms;

  if (sscanf(line, "%7s %63s %7s %d %d %d", word, addr, port, &ms, &c->client_cpu, &c->server_cpu) != 6) return false;
  if (ms < 1) return false;
  if (getaddrinfo(addr, port, &hints, &found)) return false;
  memcpy(&c->to, found->ai_addr, found->ai_addrlen);
  c->to_size = found->ai_addrlen;
  c->duration_ns = (uint64_t)ms * 1000000u;
  freeaddrinfo(found);
  *verb = word;
  return true;
}

void drive(void) {
  char line[256], *verb;
  struct command c;

  while (fgets(line, sizeof(line), stdin)) {
    if (!parse(line, &c, &verb)) {
      puts("{\"error\":\"no such command\"}");
    } else {
      move_to(pthread_self(), c.client_cpu);
      if (!strcmp(verb, "rr")) request_response(&c);
      else if (!strcmp(verb, "crr")) connect_request_response(&c);
      else if (!strcmp(verb, "pps")) datagrams_per_second(&c);
      else if (!strcmp(verb, "tput")) stream(&c);
      else puts("{\"error\":\"no such command\"}");
    }
    fflush(stdout);
  }
}
