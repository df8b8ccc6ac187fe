// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "pkg/config/config_file.h"
#include "pkg/config/config_node.h"
#include "pkg/config/print_config.h"

// From the text of a file to the configuration: errors are some lines, the first one with a place,
// and an accepted configuration is the same after it is printed and read again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  resmgr::ConfigChecks checks;
  checks.policies = {"null", "static"};
  const auto config =
      resmgr::ParseConfigFile({reinterpret_cast<const char*>(data), size}, "fuzz", checks);
  if (!config.ok()) {
    const std::string_view message = resmgr::Message(config.status());
    const auto lines = static_cast<size_t>(std::count(message.begin(), message.end(), '\n')) + 1;
    if (message.substr(0, 5) != "fuzz:" || lines > resmgr::Problems::kMost + 1) {
      std::fprintf(stderr, "%s\n", std::string(message).c_str());
      std::abort();
    }
    return 0;
  }
  const std::string printed = resmgr::PrintConfig(*config);
  const auto again = resmgr::ParseConfig(printed, "printed", checks);
  if (!again.ok() || resmgr::PrintConfig(*again) != printed) {
    std::fprintf(stderr, "%s\n%s\n", printed.c_str(),
                 again.ok() ? resmgr::PrintConfig(*again).c_str()
                            : resmgr::Describe(again.status()).c_str());
    std::abort();
  }
  return 0;
}
