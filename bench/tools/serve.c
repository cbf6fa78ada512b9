// SPDX-License-Identifier: Apache-2.0
// The answering side: one connection at a time, datagrams counted by a thread of their own. Layer: bench.
#include "traffic.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static _Atomic uint64_t datagrams;
static pthread_t datagram_thread;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t thread_cpu_ns(pthread_t thread) {
  clockid_t clock;

  return pthread_getcpuclockid(thread, &clock) ? 0 : clock_ns(clock);
}

static int bind_any(int type, int port) {
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0), on = 1, off = 0;

  if (fd < 0) die("socket");
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, (struct sockaddr *)&any, sizeof(any))) die("bind");
  return fd;
}

static void *count_datagrams(void *port) {
  int fd = bind_any(SOCK_DGRAM, (int)(intptr_t)port), room = 4 << 20;
  static char buffers[BATCH][2048];
  struct mmsghdr messages[BATCH] = {0};
  struct iovec parts[BATCH];

  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
  for (int i = 0; i < BATCH; i++) {
    parts[i] = (struct iovec){buffers[i], sizeof(buffers[i])};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  for (;;) {
    int n = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);

    if (n > 0) atomic_fetch_add(&datagrams, (uint64_t)n);
  }
  return NULL;
}

static void take_stream(int fd) {
  static char buffer[STREAM_CHUNK];
  struct report report = {0};
  uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  ssize_t n;

  undisturbed(true);
  while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) report.amount += (uint64_t)n;
  report.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
  undisturbed(false);
  send_all(fd, &report, sizeof(report));
}

static void answer(int fd) {
  char message[MESSAGE];
  struct report report;

  no_delay(fd);
  if (!receive_all(fd, message, sizeof(message))) return;
  move_to(pthread_self(), message[1]);
  switch (message[0]) {
    case ONE_SHOT:
      send_all(fd, message, sizeof(message));
      receive_all(fd, message, 1);  // the client closes first
      return;
    case CONVERSATION:
      do send_all(fd, message, sizeof(message));
      while (receive_all(fd, message, sizeof(message)));
      return;
    case STREAM:
      take_stream(fd);
      return;
    case QUERY:
      move_to(datagram_thread, message[1]);
      report = (struct report){atomic_load(&datagrams), thread_cpu_ns(datagram_thread)};
      send_all(fd, &report, sizeof(report));
  }
}

void serve(int port) {
  int listener = bind_any(SOCK_STREAM, port);

  steady(listener, SO_RCVBUFFORCE);
  if (listen(listener, 128)) die("listen");
  if (pthread_create(&datagram_thread, NULL, count_datagrams, (void *)(intptr_t)port)) die("pthread_create");
  puts("ready");
  fflush(stdout);
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0) continue;
    answer(fd);
    close(fd);
  }
}
