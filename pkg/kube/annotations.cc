// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotations.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"

namespace resmgr {
namespace {

constexpr std::array<std::string_view, 2> kDomains = {"cri-resource-manager.intel.com",
                                                      "resource-policy.nri.io"};
constexpr std::string_view kContainerScope = "/container.";
constexpr std::string_view kPodScope = "/pod";
constexpr int kUnscoped = 2;

// The rank of a scope, 0 for the narrowest; nullopt if it does not apply to the container.
std::optional<int> ScopeRank(std::string_view scope, std::string_view container_name) {
  if (scope.empty()) return kUnscoped;
  if (scope == kPodScope) return 1;
  if (!scope.starts_with(kContainerScope)) return std::nullopt;
  scope.remove_prefix(kContainerScope.size());
  return scope == container_name ? std::optional(0) : std::nullopt;
}

// The rank of an annotation; the smallest wins. The scope decides first, then the domain. `rest` is
// the annotation behind "KEY.".
std::optional<int> RankOf(std::string_view rest, std::string_view container_name) {
  for (size_t domain = 0; domain < kDomains.size(); ++domain) {
    if (!rest.starts_with(kDomains[domain])) continue;
    rest.remove_prefix(kDomains[domain].size());
    const std::optional<int> scope = ScopeRank(rest, container_name);
    if (!scope) return std::nullopt;
    return *scope * static_cast<int>(kDomains.size()) + static_cast<int>(domain);
  }
  return std::nullopt;
}

std::optional<ScopedAnnotation> FindOldForm(const StringMap& annotations, std::string_view key) {
  for (auto it = annotations.lower_bound(kDomains.front()); it != annotations.end(); ++it) {
    std::string_view rest = it->first;
    if (!rest.starts_with(kDomains.front())) break;
    rest.remove_prefix(kDomains.front().size());
    if (!rest.starts_with('/') || rest.substr(1) != key) continue;
    return ScopedAnnotation{it->first, it->second, /*old_form=*/true};
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 2> kDomainsWithKey = {".resource-policy.nri.io",
                                                             ".cri-resource-manager.intel.com"};
// Limit of the typos that one call reports: a pod may have many, and a user reads the first few.
constexpr size_t kMostTypos = 5;

// Longest part of a wrong value in such a sentence, in bytes.
constexpr size_t kMostValue = 64;

// KEY.DOMAIN, followed by a scope.
struct ScopedKey {
  std::string_view key;
  std::string_view scope;  // "/pod"; "" where there is none
};

// nullopt: the annotation is not in these domains, or has the old form.
std::optional<ScopedKey> SplitKey(std::string_view annotation) {
  for (const std::string_view domain : kDomainsWithKey) {
    const size_t at = annotation.find(domain);
    if (at == std::string_view::npos) continue;
    const std::string_view scope = annotation.substr(at + domain.size());
    if (scope.empty() || scope.starts_with('/')) return ScopedKey{annotation.substr(0, at), scope};
  }
  return std::nullopt;
}

// All keys in these domains that have a meaning (docs/annotations.md).
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

bool IsKnownKey(std::string_view key) {
  return std::ranges::find(AnnotationKeys(), key) != AnnotationKeys().end();
}

// Why no part of the daemon reads the annotation; "" if it may be read.
std::string WhyMistyped(const ScopedKey& parts) {
  if (!IsKnownKey(parts.key)) {
    const std::string_view closest = ClosestName(parts.key, AnnotationKeys());
    return closest.empty() ? "" : fmt::format("unknown key; did you mean {}?", closest);
  }
  const bool known = parts.scope.empty() || parts.scope == kPodScope ||
                     (parts.scope.starts_with(kContainerScope) && parts.scope != kContainerScope);
  return known ? "" : "it can end with /pod or /container.NAME";
}

// The keys among AnnotationKeys whose values are true or false.
constexpr std::array<std::string_view, 11> kBooleans = {
    "allow-rebalance",      "cpu-file",
    "cpu.preserve",         "hide-hyperthreads",
    "memory.preserve",      "pick-resources-by-hints",
    "prefer-isolated-cpus", "prefer-reserved-cpus",
    "prefer-shared-cpus",   "require-isolated-cpus",
    "strict.topologyhints"};

bool IsBooleanKey(std::string_view key) {
  return std::ranges::find(kBooleans, key) != kBooleans.end();
}

// The keys that stand behind a domain, in both domains.
constexpr std::array<std::string_view, 2> kKeysBehindDomain = {"affinity", "anti-affinity"};

// The same as WhyMistyped for an annotation of the form DOMAIN/KEY. Policies read that form of
// other keys in the first domain only.
std::string WhyMistypedBehindDomain(std::string_view annotation) {
  for (const std::string_view domain : kDomains) {
    if (!annotation.starts_with(domain) || annotation.substr(domain.size(), 1) != "/") continue;
    const std::string_view key = annotation.substr(domain.size() + 1);
    if (std::ranges::find(kKeysBehindDomain, key) != kKeysBehindDomain.end()) return "";
    if (IsKnownKey(key))
      return domain == kDomains.front() ? "" : fmt::format("write {}.{}", key, domain);
    std::vector<std::string_view> keys = AnnotationKeys();
    keys.insert(keys.end(), kKeysBehindDomain.begin(), kKeysBehindDomain.end());
    const std::string_view closest = ClosestName(key, keys);
    return closest.empty() ? "" : fmt::format("unknown key; did you mean {}?", closest);
  }
  return "";
}

// "KEY" for an annotation of the old form, DOMAIN/KEY; "" for others.
std::string_view OldFormKey(std::string_view annotation) {
  const std::string_view domain = kDomains.front();
  if (!annotation.starts_with(domain)) return {};
  annotation.remove_prefix(domain.size());
  return annotation.starts_with('/') ? annotation.substr(1) : std::string_view();
}

// The value without a comment of YAML and white space around it.
std::string_view WithoutComment(std::string_view value) {
  for (size_t at = value.find('#'); at != std::string_view::npos; at = value.find('#', at + 1)) {
    const bool begins =
        at == 0 || std::string_view(" \t\n").find(value[at - 1]) != std::string_view::npos;
    if (begins) return Trim(value.substr(0, at));
  }
  return Trim(value);
}

// Why no policy heeds the value; "" if one may do so.
std::string WhyNoBoolean(std::string_view key, bool old_form, std::string_view value) {
  if (!IsBooleanKey(key)) return "";
  const bool may_be_map = MayBeMap({.key = key, .value = value, .old_form = old_form});
  if (may_be_map || WithoutComment(value).empty() || BoolOfAnnotation(value)) return "";
  return fmt::format("\"{}\" is not true or false", Printable(value, kMostValue));
}

std::string SentenceAbout(std::string_view annotation, std::string_view why) {
  return fmt::format("annotation {} ignored: {}", Printable(annotation), why);
}

}  // namespace

// Looks only at the annotations that begin with `key`, which are neighbours in the map, since
// policies call this for every decision.
std::optional<ScopedAnnotation> FindAnnotation(const StringMap& annotations, std::string_view key,
                                               std::string_view container_name) {
  std::optional<ScopedAnnotation> best;
  int best_rank = 0;
  for (auto it = annotations.lower_bound(key); it != annotations.end(); ++it) {
    std::string_view rest = it->first;
    if (!rest.starts_with(key)) break;
    rest.remove_prefix(key.size());
    if (!rest.starts_with('.')) continue;
    const std::optional<int> rank = RankOf(rest.substr(1), container_name);
    if (!rank || (best && best_rank <= *rank)) continue;
    best = ScopedAnnotation{it->first, it->second};
    best_rank = *rank;
  }
  return best ? best : FindOldForm(annotations, key);
}

std::string AnnotationChange(const StringMap& annotations, std::string_view key,
                             std::string_view container_name, std::string_view value) {
  const std::optional<ScopedAnnotation> found = FindAnnotation(annotations, key, container_name);
  const std::string full =
      found ? std::string(found->key)
            : fmt::format("{}.{}/container.{}", key, kDomains.back(), container_name);
  return fmt::format("the annotation {}: \"{}\"", Printable(full), value);
}

bool IsForDecisions(std::string_view key) {
  // Those of policies are among them: kDomains.
  constexpr std::array<std::string_view, 5> kRead = {"cri-resource-manager.intel.com", ".nri.io",
                                                     ".crio.io", ".resources.beta.kubernetes.io",
                                                     kResourcesAnnotation};
  return std::ranges::any_of(
      kRead, [key](std::string_view part) { return key.find(part) != std::string_view::npos; });
}

std::optional<StringMap::value_type> FindCrioAnnotation(const StringMap& annotations,
                                                        std::string_view key,
                                                        std::string_view container) {
  std::optional<StringMap::value_type> of_pod;
  // Annotations that begin with the key are neighbours in the map.
  for (auto it = annotations.lower_bound(key); it != annotations.end(); ++it) {
    std::string_view rest = it->first;
    if (!rest.starts_with(key)) break;
    rest.remove_prefix(key.size());
    if (rest.empty()) of_pod = *it;
    if (rest.starts_with('/') && rest.substr(1) == container) return *it;
  }
  return of_pod;
}

bool WantsSharedCpus(const StringMap& annotations, std::string_view container) {
  if (annotations.empty()) return false;
  const auto found = FindCrioAnnotation(annotations, kCpuSharedAnnotation, container);
  return found && found->second == "enable";
}

std::optional<bool> BoolOfAnnotation(std::string_view value) {
  value = WithoutComment(value);
  if (value.size() > 1 && value.front() == value.back() &&
      (value.front() == '"' || value.front() == '\''))
    value = value.substr(1, value.size() - 2);
  return ParseBool(value);
}

bool MayBeMap(const ScopedAnnotation& annotation) {
  return annotation.old_form && annotation.value.find(':') != std::string_view::npos;
}

std::optional<MapAnnotation> AsMapAnnotation(std::string_view annotation) {
  if (const std::string_view key = OldFormKey(annotation); IsKnownKey(key))
    return MapAnnotation{.has_booleans = IsBooleanKey(key)};
  for (const std::string_view domain : kDomains) {
    for (const std::string_view key : kKeysBehindDomain) {
      if (annotation == fmt::format("{}/{}", domain, key)) return MapAnnotation{};
    }
  }
  return std::nullopt;
}

std::vector<std::string> MistypedAnnotations(const StringMap& annotations) {
  std::vector<std::string> typos;
  for (const auto& [annotation, value] : annotations) {
    const std::optional<ScopedKey> parts = SplitKey(annotation);
    std::string why = parts ? WhyMistyped(*parts) : WhyMistypedBehindDomain(annotation);
    if (why.empty()) why = WhyNoBoolean(parts ? parts->key : OldFormKey(annotation), !parts, value);
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
    if (!parts || !IsKnownKey(parts->key) || !parts->scope.starts_with(kContainerScope)) continue;
    const std::string_view name = parts->scope.substr(kContainerScope.size());
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
