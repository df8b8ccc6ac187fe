// SPDX-License-Identifier: Apache-2.0
// The one process of a test pod's sandbox: holds the namespaces until it is told to go. As process
// 1 of its PID namespace it gets no default signal actions, hence the handlers.
#include <signal.h>
#include <unistd.h>

static void Leave(int signal_number) {
  (void)signal_number;
  _exit(0);
}

int main(void) {
  struct sigaction leave = {.sa_handler = Leave};
  sigaction(SIGTERM, &leave, NULL);
  sigaction(SIGINT, &leave, NULL);
  for (;;)
    pause();
}
