/* SPDX-License-Identifier: Apache-2.0 */
/* The process that holds a pod's namespaces: it waits, and takes up what becomes an orphan in the pod. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t all;
	int got;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	while (sigwait(&all, &got) == 0) {
		if (got == SIGTERM || got == SIGINT)
			return EXIT_SUCCESS;
		if (got == SIGCHLD)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	return EXIT_FAILURE;
}
