// SPDX-License-Identifier: Apache-2.0
// usage: place-memory NODE MIB
// Has so much memory on one memory node, as soon as its cgroup allows that, and prints how many
// bytes of it lie there by the kernel's answer for each page. Then it waits and prints that again
// each second.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// As in <numaif.h>, which is of a package that the build needs for nothing else.
enum { kBind = 2, kMove = 2, kBits = 8 * sizeof(unsigned long) };

static int Bind(void* memory, size_t size, int node) {
  unsigned long nodes[1024 / kBits];
  memset(nodes, 0, sizeof nodes);
  nodes[(size_t)node / kBits] |= 1UL << ((size_t)node % kBits);
  return (int)syscall(SYS_mbind, memory, size, kBind, nodes, (unsigned long)sizeof nodes * 8,
                      (unsigned)kMove);
}

// Bytes of these pages that lie on the node; -1: the kernel does not tell.
static long BytesOn(char* memory, size_t size, int node) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  enum { kAtOnce = 1024 };
  static void* pages[kAtOnce];
  static int nodes[kAtOnce];
  long bytes = 0;
  for (size_t done = 0; done < size;) {
    size_t count = 0;
    for (; count < kAtOnce && done < size; ++count, done += page)
      pages[count] = memory + done;
    if (syscall(SYS_move_pages, 0, (unsigned long)count, pages, NULL, nodes, 0) != 0) return -1;
    for (size_t i = 0; i < count; ++i)
      if (nodes[i] == node) bytes += (long)page;
  }
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const int node = atoi(argv[1]);
  const size_t size = (size_t)atoi(argv[2]) << 20;
  if (node < 0 || node >= 1024 || size == 0) return 1;
  char* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  for (;;) {
    const int failed = Bind(memory, size, node);
    if (failed == 0) break;
    printf("node %d: %s\n", node, strerror(errno));
    fflush(stdout);
    sleep(1);
  }
  memset(memory, 7, size);
  for (;;) {
    printf("has %ld\n", BytesOn(memory, size, node));
    fflush(stdout);
    sleep(1);
  }
}
