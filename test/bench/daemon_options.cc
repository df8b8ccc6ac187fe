// SPDX-License-Identifier: Apache-2.0
#include "test/bench/daemon_options.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <sched.h>

#include "pkg/base/parse.h"

namespace resmgr::bench {

DaemonOptions ParseDaemonOptions(int argc, char** argv, int rounds) {
  const auto fail = [argv](const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", argv[0], what.c_str());
    std::exit(1);
  };
  DaemonOptions options{.rounds = rounds};
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (i + 1 == argc) fail(fmt::format("{} needs a value", flag));
    if (flag == "--rounds") {
      options.rounds = std::atoi(argv[i + 1]);
      if (options.rounds < 1) fail("--rounds needs a number from 1 on");
    } else if (flag == "--daemon") {
      options.daemon = argv[i + 1];
    } else if (flag == "--cpu") {
      const std::optional<int64_t> cpu = ParseInt(argv[i + 1]);
      if (!cpu || *cpu < -1 || *cpu >= CPU_SETSIZE) fail("--cpu needs a CPU's number, or -1");
      options.cpu = static_cast<int>(*cpu);
    } else {
      fail(fmt::format("there is no option {}; there are --rounds N, --daemon PROGRAM and --cpu N",
                       flag));
    }
  }
  return options;
}

}  // namespace resmgr::bench
