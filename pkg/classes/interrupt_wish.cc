// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/interrupt_wish.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/glob.h"

namespace resmgr {
namespace {

constexpr std::string_view kAffinity = "irq-affinity";
// Each one is compared with each interrupt of the machine.
constexpr size_t kMostGlobs = 64;

void ReadGlobs(ConfigSection& section, std::string_view key, std::vector<std::string>& globs) {
  section.List(key, globs, "globs of interrupts");
  if (globs.size() > kMostGlobs)
    section.Fail(key, fmt::format("has more than {} globs", kMostGlobs));
  const auto wrong =
      std::ranges::find_if(globs, [](const std::string& glob) { return !IsGlob(glob); });
  if (wrong != globs.end())
    section.Fail(key, fmt::format("\"{}\" has a [ without its ]", Printable(*wrong, 64)));
}

}  // namespace

std::string InterruptWish::ToString() const {
  std::string text;
  for (const auto& [word, globs] : {std::pair("claim", &claim), std::pair("mask", &mask)})
    if (!globs->empty())
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", word, fmt::join(*globs, ", "));
  return text;
}

Status ReadInterruptWish(const StringMap& annotations, std::string_view container,
                         InterruptWish& wish) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ReadAnnotation(annotations, kAffinity, container));
  ConfigSection section(node, kAffinity);
  ReadGlobs(section, "claim", wish.claim);
  ReadGlobs(section, "mask", wish.mask);
  section.Choice<bool>("mode", {{"mask-first", false}, {"claim-first", true}}, wish.mask_wins,
                       "the list that is applied first");
  return section.Finish();
}

}  // namespace resmgr
