// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "pkg/config/config_format.h"
#include "pkg/config/config_options.h"
#include "pkg/config/config_text.h"
#include "pkg/config/print_config.h"

namespace {

resmgr::StatusOr<resmgr::Config> ReadAny(std::string_view text,
                                         const resmgr::ConfigChecks& checks) {
  RESMGR_ASSIGN_OR_RETURN(text, resmgr::CheckConfigText(text, "fuzz"));
  if (resmgr::DetectConfigFormat(text) == resmgr::ConfigFormat::kYaml) {
    return resmgr::ParseConfig(text, "fuzz", checks);
  }
  RESMGR_ASSIGN_OR_RETURN(const auto lines, resmgr::ParseOptionLines(text, "fuzz"));
  resmgr::ConfigOptions options;
  resmgr::CommandLine line("fuzz", "");
  options.DeclareFlags(line, checks);
  RESMGR_RETURN_IF_ERROR(ApplyOptionLines(lines, line, options));
  resmgr::Config config;
  options.ApplyTo(config);
  return config;
}

}  // namespace

// From the text of a file to the configuration: errors are one line with a place, and what is
// accepted survives being printed and read again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  resmgr::ConfigChecks checks;
  checks.policies = {"null", "static"};
  const auto config = ReadAny({reinterpret_cast<const char*>(data), size}, checks);
  if (!config.ok()) {
    const std::string_view message = resmgr::Message(config.status());
    if (message.substr(0, 5) != "fuzz:" || message.find('\n') != std::string_view::npos) {
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
