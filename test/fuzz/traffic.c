// SPDX-License-Identifier: Apache-2.0
/* Any bytes as what the traffic tool reads: a command, and what comes by a connection. Layer: test. */
#define main traffic_main
#include "../../bench/tools/traffic.c"
#undef main
#include "../../bench/tools/drive.c"
#include "../../bench/tools/serve.c"

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void command_line(const uint8_t *bytes, size_t size)
{
	struct command command;
	char line[256] = {0}, *verb;

	memcpy(line, bytes, size < sizeof(line) ? size : sizeof(line) - 1);
	require(!parse(line, &command, &verb) || (command.to_size <= sizeof(command.to) && command.duration_ns > 0 &&
						  command.duration_ns <= (uint64_t)INT32_MAX * 1000000u));
}

/* The server takes them and answers; of a stream it has counted all but the first message. */
static void connection(const uint8_t *bytes, size_t size)
{
	struct report report;
	int ends[2];

	require(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	require(write(ends[0], bytes, size) == (ssize_t)size && !shutdown(ends[0], SHUT_WR));
	answer(ends[1]);
	close(ends[1]);
	if (size >= MESSAGE && bytes[0] == STREAM)
		require(receive_all(ends[0], &report, sizeof(report)) && report.amount == size - MESSAGE);
	close(ends[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	datagram_thread = pthread_self();
	command_line(bytes, size);
	connection(bytes, size);
	return 0;
}
