// SPDX-License-Identifier: Apache-2.0
/* Any bytes as what the CNI program reads: a runtime's configuration, and an answer of the agent. Layer: test. */
#include <stdint.h>
#include <time.h>

/* Time stands still: libFuzzer draws from what is compared, and would draw otherwise in each run. */
static int no_time(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){};
	return 0;
}

#define main shim_main
#define clock_gettime no_time
#include "../../cni/netplane-cni.c"
#undef main
#undef clock_gettime

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* What is found is a part of the configuration, between quotes. */
static void look_for(const char *key, const char *config)
{
	char *found = find(config, key);

	require(!found || (strstr(config, found) && !strpbrk(found, "\"\\")));
	free(found);
}

/* The string ends at its last quote, and says the same bytes. */
static void quote(const char *data, size_t size)
{
	struct text text = {};
	const char *at;

	put_string(&text, data, size);
	at = text.data + 1;
	for (size_t i = 0; i < size; i++) {
		unsigned int byte = (unsigned char)*at++;

		if (byte == '\\' && *at == 'u') {
			require(sscanf(at, "u%4x", &byte) == 1);
			at += 5;
		} else if (byte == '\\') {
			byte = (unsigned char)*at++;
		}
		require(byte == (unsigned char)data[i]);
	}
	require(!strcmp(at, "\""));
	free(text.data);
}

/* All of it is read, whatever it is. */
static void read_back(const char *data, size_t size)
{
	int ends[2];
	struct text all;

	require(!pipe(ends) && write(ends[1], data, size) == (ssize_t)size);
	close(ends[1]);
	all = read_all(ends[0], now_ms() + DEADLINE_MS);
	require(all.size == size && !memcmp(all.data, data, size));
	close(ends[0]);
	free(all.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *config = strndup((const char *)bytes, size);

	look_for("cniVersion", config);
	look_for("socket", config);
	quote((const char *)bytes, size);
	read_back((const char *)bytes, size);
	free(config);
	return 0;
}
