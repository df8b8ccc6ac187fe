// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotation_typos.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"

namespace resmgr {
namespace {

constexpr std::array<std::string_view, 2> kDomainsWithKey = {".resource-policy.nri.io",
                                                             ".cri-resource-manager.intel.com"};
constexpr std::string_view kOfContainer = "/container.";
// Whoever may create pods chooses annotations; a sentence for each of many helps nobody.
constexpr size_t kMostTypos = 5;

// KEY.DOMAIN, followed by a scope.
struct ScopedKey {
  std::string_view key;
  std::string_view scope;  // "/pod"; "" where there is none
};

// nullopt: it is not in these domains, or has the old form.
std::optional<ScopedKey> SplitKey(std::string_view annotation) {
  for (const std::string_view domain : kDomainsWithKey) {
    const size_t at = annotation.find(domain);
    if (at == std::string_view::npos) continue;
    const std::string_view scope = annotation.substr(at + domain.size());
    if (scope.empty() || scope.starts_with('/')) return ScopedKey{annotation.substr(0, at), scope};
  }
  return std::nullopt;
}

bool IsKnownKey(std::string_view key) {
  return std::ranges::find(AnnotationKeys(), key) != AnnotationKeys().end();
}

// The reason why nothing reads the annotation; "" where something may.
std::string WhyMistyped(const ScopedKey& parts) {
  if (!IsKnownKey(parts.key)) {
    const std::string_view closest = ClosestName(parts.key, AnnotationKeys());
    return closest.empty() ? "" : fmt::format("unknown key; did you mean {}?", closest);
  }
  const bool known = parts.scope.empty() || parts.scope == "/pod" ||
                     (parts.scope.starts_with(kOfContainer) && parts.scope != kOfContainer);
  return known ? "" : "it can end with /pod or /container.NAME";
}

std::string SentenceAbout(std::string_view annotation, std::string_view why) {
  return fmt::format("annotation {} ignored: {}", Printable(annotation), why);
}

}  // namespace

const std::vector<std::string_view>& AnnotationKeys() {
  static const std::vector<std::string_view> keys = {"alignment",
                                                     "allow-rebalance",
                                                     "allow.topologyhints",
                                                     "balloon.balloons",
                                                     "blockioclass",
                                                     "cold-start",
                                                     "cpu-class",
                                                     "cpu-file",
                                                     "cpu.preserve",
                                                     "deny.topologyhints",
                                                     "dynamic-pool.dynamic-pools",
                                                     "hide-hyperthreads",
                                                     "irq-affinity",
                                                     "isolation",
                                                     "memory-type",
                                                     "memory.preserve",
                                                     "pick-resources-by-hints",
                                                     "pool.podpools",
                                                     "prefer-cpu-priority",
                                                     "prefer-isolated-cpus",
                                                     "prefer-reserved-cpus",
                                                     "prefer-shared-cpus",
                                                     "rdtclass",
                                                     "require-isolated-cpus",
                                                     "scheduling-class",
                                                     "strict.topologyhints",
                                                     "topologyhints",
                                                     "toptierlimit",
                                                     "unlimited-burstable"};
  return keys;
}

std::vector<std::string> MistypedAnnotations(const StringMap& annotations) {
  std::vector<std::string> typos;
  for (const auto& [annotation, value] : annotations) {
    const std::optional<ScopedKey> parts = SplitKey(annotation);
    const std::string why = parts ? WhyMistyped(*parts) : "";
    if (!why.empty()) typos.push_back(SentenceAbout(annotation, why));
    if (typos.size() == kMostTypos) break;
  }
  return typos;
}

std::vector<std::string> MistypedContainers(const StringMap& annotations,
                                            const std::vector<std::string_view>& containers) {
  std::vector<std::string> typos;
  for (const auto& [annotation, value] : annotations) {
    const std::optional<ScopedKey> parts = SplitKey(annotation);
    if (!parts || !IsKnownKey(parts->key) || !parts->scope.starts_with(kOfContainer)) continue;
    const std::string_view name = parts->scope.substr(kOfContainer.size());
    if (std::ranges::find(containers, name) != containers.end()) continue;
    const std::string_view closest = ClosestName(name, containers);
    if (closest.empty()) continue;
    typos.push_back(
        SentenceAbout(annotation, fmt::format("the pod has no container {} now; did you mean {}?",
                                              Printable(name), Printable(closest))));
    if (typos.size() == kMostTypos) break;
  }
  return typos;
}

}  // namespace resmgr
