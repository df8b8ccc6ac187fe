// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_file.h"

// A message about a hook file fits a line of a log, and an accepted file can be used as it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestLine = 512;
  const auto file = resmgr::hooks::ParseHookFile(
      "fuzz.json", {reinterpret_cast<const char*>(data), size}, std::chrono::seconds(2));
  const auto check = [](bool good, std::string_view text) {
    if (good) return;
    std::fprintf(stderr, "%s\n", std::string(text).c_str());
    std::abort();
  };
  const auto check_line = [&check](std::string_view line) {
    check(line.size() < kLongestLine && resmgr::Printable(line, kLongestLine) == line, line);
  };
  if (!file.ok()) {
    check_line(resmgr::Message(file.status()));
    return 0;
  }
  const resmgr::hooks::HookServerSettings& settings = file->settings;
  check(settings.endpoint.starts_with('/') && settings.endpoint.find("//") == std::string::npos,
        settings.endpoint);
  check(settings.timeout.count() > 0 && settings.timeout <= resmgr::hooks::kLongestHookTimeout,
        "timeout");
  check(file->warnings.size() <= resmgr::hooks::kMostHookWarnings, "warnings");
  for (const std::string& warning : file->warnings)
    check_line(warning);
  return 0;
}
