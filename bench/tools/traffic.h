// SPDX-License-Identifier: Apache-2.0
// What both sides of the traffic tool share. Layer: bench.
#pragma once
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { MESSAGE = 64, BATCH = 32, STREAM_CHUNK = 256 << 10, STREAM_ROOM = 1 << 20 };
enum kind { ONE_SHOT = 'C', CONVERSATION = 'R', STREAM = 'T', QUERY = 'Q' };

// What the server tells of a stream, or of the datagrams so far.
struct report {
  uint64_t amount;  // bytes or datagrams
  uint64_t cpu_ns;  // of the thread that took them
};

// Answers on TCP and UDP until it is killed.
void serve(int port);
// Obeys commands from standard input until it ends.
void drive(void);

uint64_t clock_ns(clockid_t clock);
// On machines with fewer CPUs it stays where it is.
void move_to(pthread_t thread, int cpu);
// False when the other side has closed, or does not answer in time.
bool receive_all(int fd, void *into, size_t size);
bool send_all(int fd, const void *from, size_t size);
void no_delay(int fd);
// A stream's rate is to be a matter of its path, not of other tasks that want the CPU.
void undisturbed(bool on);
// Nor of a buffer that grows meanwhile: SO_SNDBUFFORCE or SO_RCVBUFFORCE; the latter before connect or listen.
void steady(int fd, int option);
