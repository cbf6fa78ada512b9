// SPDX-License-Identifier: Apache-2.0
/*
 * The container `datastore` of the nodes' pods. It rests; that it is ready says that the agent beside it has read
 * that the datastore is not locked.
 *
 *   netplane-datastore         rests until it is told to end
 *   netplane-datastore FILE    its probe: is the agent's file there?
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int probe(const char *file)
{
	if (!access(file, F_OK))
		return 0;
	if (errno == ENOENT)
		puts("the datastore is locked, or the agent of this pod has not read it yet");
	else
		printf("%s: %s\n", file, strerror(errno));
	return 1;
}

/* The first process of a container gets a signal that it has no handler for only while it is blocked. */
static int rest(void)
{
	sigset_t ends;
	int got;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return sigwait(&ends, &got) ? 1 : 0;
}

int main(int argc, char **argv)
{
	return argc > 1 ? probe(argv[1]) : rest();
}
