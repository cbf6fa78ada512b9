// SPDX-License-Identifier: Apache-2.0
// Makes traffic and measures it. Layer: bench.
//
//   traffic serve PORT      answers on TCP and UDP, both families, one connection at a time, until it is killed; says
// "ready"
//   traffic drive           reads commands, one a line, and answers each with one line of JSON:
//     rr   ADDR PORT MS CLIENT_CPU SERVER_CPU    requests and responses of 64 bytes on one connection
//     crr  …                                     connect, request, response, close
//     pps  …                                     UDP datagrams of 64 bytes as fast as they go, counted where they
// arrive
//     tput …                                     one TCP stream as fast as it goes, counted where it arrives
//
// A TCP connection begins with a message of 64 bytes: its kind, and the CPU on which the server is to work on it.
#include "traffic.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

uint64_t clock_ns(clockid_t clock) {
  struct timespec t;

  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void move_to(pthread_t thread, int cpu) {
  cpu_set_t set;

  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread, sizeof(set), &set);
}

bool receive_all(int fd, void *into, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = recv(fd, (char *)into + done, size - done, 0);

    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

bool send_all(int fd, const void *from, size_t size) { return send(fd, from, size, MSG_NOSIGNAL) == (ssize_t)size; }

void no_delay(int fd) {
  int on = 1;

  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void undisturbed(bool on) {
  struct sched_param order = {.sched_priority = on ? 1 : 0};

  sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &order);
}

void steady(int fd, int option) {
  int room = STREAM_ROOM;

  setsockopt(fd, SOL_SOCKET, option, &room, sizeof(room));
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "serve")) {
    serve(atoi(argv[2]));
    return 1;
  }
  if (argc == 2 && !strcmp(argv[1], "drive")) {
    drive();
    return 0;
  }
  fputs("usage: traffic serve PORT | traffic drive\n", stderr);
  return 2;
}
