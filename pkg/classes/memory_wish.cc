// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_wish.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kDomain = ".memory-qos.nri.io";
constexpr std::string_view kClass = "class";
constexpr size_t kLongestValue = 64;

// An annotation of the domain that is for this container.
struct Found {
  std::string_view key;   // as it is written
  std::string_view what;  // "class", or a file
  std::string_view value;
  bool own = false;  // for this container alone
};

std::optional<Found> Read(std::string_view key, std::string_view value,
                          std::string_view container) {
  const size_t slash = key.find('/');
  std::string_view what = key.substr(0, slash);
  if (!what.ends_with(kDomain)) return std::nullopt;
  what.remove_suffix(kDomain.size());
  const bool own = slash != std::string_view::npos;
  if (own && key.substr(slash + 1) != container) return std::nullopt;
  return Found{key, what, value, own};
}

// One for each class or file: the container's own one wins.
std::vector<Found> FindAll(const Pod& pod, std::string_view container) {
  std::vector<Found> all;
  for (const auto& [key, value] : pod.annotations) {
    const std::optional<Found> found = Read(key, value, container);
    if (!found) continue;
    const auto known = std::ranges::find(all, found->what, &Found::what);
    if (known == all.end()) {
      all.push_back(*found);
    } else if (found->own) {
      *known = *found;
    }
  }
  return all;
}

// False: the class is a part of the memory limit, and the container has none.
bool SetFiles(const MemoryClassConfig& known, int64_t memory_limit, MemoryWish& wish) {
  if (known.swap_limit_ratio) {
    if (memory_limit <= 0) return false;
    const double high = static_cast<double>(memory_limit) * (1 - *known.swap_limit_ratio);
    wish.files["memory.high"] = fmt::format("{:.0f}", std::floor(high));
    wish.files["memory.swap.max"] = "max";
  }
  const auto set = [&wish](const char* file, const std::string& text) {
    if (!text.empty()) wish.files[file] = text;
  };
  set("memory.high", known.high);
  set("memory.low", known.low);
  set("memory.min", known.min);
  set("memory.swap.max", known.swap_max);
  wish.name = known.name;
  return true;
}

Status ApplyClass(const Found& found, int64_t memory_limit, const ClassesConfig& config,
                  MemoryWish& wish) {
  if (found.value.empty()) return OkStatus();
  const auto known = std::ranges::find(config.memory, found.value, &MemoryClassConfig::name);
  if (known == config.memory.end()) {
    std::vector<std::string> names;
    for (const MemoryClassConfig& one : config.memory)
      names.push_back(one.name);
    return InvalidArgument("annotation {}: there is no class \"{}\" of memory; there are: {}",
                           found.key, Printable(found.value, 64), fmt::join(names, ", "));
  }
  if (SetFiles(*known, memory_limit, wish)) return OkStatus();
  return InvalidArgument(
      "annotation {}: the class \"{}\" of memory is a part of the memory "
      "limit, and the container has none",
      found.key, known->name);
}

Status ApplyFile(const Found& found, const ClassesConfig& config, MemoryWish& wish) {
  const bool allowed =
      std::ranges::find(config.memory_files, found.what) != config.memory_files.end();
  if (!allowed) {
    return InvalidArgument("annotation {}: {} is not in classes.MemoryAnnotations", found.key,
                           Printable(found.what, 64));
  }
  if (found.value.empty() || found.value.size() > kLongestValue || !IsPlainAscii(found.value)) {
    return InvalidArgument("annotation {}: \"{}\" can be no value of a cgroup's file", found.key,
                           Printable(found.value, 64));
  }
  wish.files[std::string(found.what)] = found.value;
  return OkStatus();
}

}  // namespace

MemoryWish MemoryOfPool(std::string_view class_name, std::string_view pool, int64_t memory_limit,
                        const ClassesConfig& config) {
  MemoryWish wish;
  const auto known = std::ranges::find(config.memory, class_name, &MemoryClassConfig::name);
  if (known == config.memory.end()) return wish;
  if (!SetFiles(*known, memory_limit, wish)) {
    wish.note = fmt::format(
        "pool {}: the class \"{}\" of memory is a part of the memory limit, and the container has "
        "none",
        pool, known->name);
    return wish;
  }
  wish.source = fmt::format("pool {}", pool);
  return wish;
}

StatusOr<MemoryWish> MemoryOf(const Pod& pod, std::string_view container, int64_t memory_limit,
                              const ClassesConfig& config, const MemoryWish& of_pool) {
  if (pod.annotations.empty()) return of_pool;
  const std::vector<Found> all = FindAll(pod, container);
  if (all.empty()) return of_pool;
  std::string keys;
  for (const Found& found : all)
    keys.append(keys.empty() ? "" : ", ").append(found.key);
  const auto chosen = std::ranges::find(all, kClass, &Found::what);
  const std::string_view name = chosen == all.end() ? std::string_view() : chosen->value;
  // Single files are set over the class of the pool.
  MemoryWish wish;
  if (chosen == all.end()) wish = of_pool;
  if (!config.Allows("memory", name, pod.namespace_name)) {
    wish = of_pool;
    wish.note = fmt::format(
        "annotation {} ignored: namespace {} is not in classes.AllowedNamespaces.memory",
        Printable(keys, 512), Printable(pod.namespace_name));
    return wish;
  }
  wish.source.append(wish.source.empty() ? "" : ", ")
      .append(fmt::format("annotation {}", Printable(keys, 512)));
  for (const Found& found : all)
    if (found.what == kClass) RESMGR_RETURN_IF_ERROR(ApplyClass(found, memory_limit, config, wish));
  wish.by_pod = true;
  for (const Found& found : all)
    if (found.what != kClass) RESMGR_RETURN_IF_ERROR(ApplyFile(found, config, wish));
  return wish;
}

}  // namespace resmgr
