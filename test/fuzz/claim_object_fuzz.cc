// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/claims/claim_names.h"
#include "pkg/dra/claim_object.h"

// An accepted text is the asked claim, with whole CPUs on devices of the driver; the message about
// any other text fits a line of a log.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace dra = resmgr::dra;
  constexpr size_t kLongestLine = 1024;
  const dra::ClaimName asked{.uid = "u-1", .namespace_name = "default", .name = "c"};
  const dra::Driver driver{.name = "dra.cpu", .compatible = true};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto claim = dra::ParseClaimObject(text, asked, driver);
  const auto unused = dra::WhyUnused(text, asked);
  // A claim that can be prepared is in use.
  if (claim.ok() && (!unused.ok() || !unused->empty())) std::abort();
  if (!claim.ok()) {
    const std::string_view line = resmgr::Message(claim.status());
    if (line.size() >= kLongestLine || resmgr::Printable(line, kLongestLine) != line) std::abort();
    return 0;
  }
  if (claim->claim.uid != asked.uid || claim->claim.parts.size() != claim->devices.size() ||
      claim->devices.size() > dra::kMostClaimResults)
    std::abort();
  for (const resmgr::ClaimPart& part : claim->claim.parts)
    if (part.cpus < 1 || part.cpus > resmgr::CpuSet::kBits || !part.node) std::abort();
  if (claim->claim.pods.size() > dra::kMostClaimPods) std::abort();
  for (const std::string& pod : claim->claim.pods)
    if (!resmgr::IsClaimUid(pod)) std::abort();
  return 0;
}
