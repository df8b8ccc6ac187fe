// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/claims/claim_names.h"
#include "pkg/simulator/scenario.h"

// A refusal says where; an accepted scenario can be simulated: names are there, and numbers are not
// negative. A claim has the name that its object has.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace resmgr;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = ReadScenario(text, "input");
  if (!scenario.ok()) {
    if (!Message(scenario.status()).starts_with("input:")) std::abort();
    return 0;
  }
  for (const Step& step : *scenario) {
    if (!step.where.starts_with("input:")) std::abort();
    if (const auto* const claim = std::get_if<ClaimDocument>(&step.action)) {
      // The driver may refuse it, but not for being another one than it says.
      if (!IsClaimUid(claim->name.uid) || claim->name.name.empty()) std::abort();
      const auto read = dra::ParseClaimObject(claim->object, claim->name,
                                              {.name = "dra.cpu", .compatible = true});
      if (!read.ok() && Message(read.status()).find("was replaced") != std::string_view::npos)
        std::abort();
    }
    const auto* const pod = std::get_if<Manifest>(&step.action);
    if (pod == nullptr) continue;
    if (pod->name.empty() || pod->containers.empty()) std::abort();
    for (const Manifest::Container& container : pod->containers) {
      const Requirements& needs = container.requirements;
      if (container.name.empty() || needs.cpu_request.value < 0) std::abort();
      if (needs.cpu_limit.value > 0 && needs.cpu_request > needs.cpu_limit) std::abort();
    }
  }
  return 0;
}
