// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_preview.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "pkg/base/parse.h"
#include "pkg/classes/container_threads.h"
#include "pkg/classes/cpu_mask.h"

namespace resmgr {
namespace {

constexpr int64_t kMostCacheBits = 64;
constexpr std::string_view kRootClass = "system/default";

std::vector<uint32_t> CacheIds(size_t caches) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < std::max<size_t>(caches, 1); ++id)
    ids.push_back(id);
  return ids;
}

RdtCache MakeCache(int64_t bits, size_t caches) {
  RdtCache cache;
  cache.mask = bits == kMostCacheBits ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  cache.ids = CacheIds(caches);
  return cache;
}

std::string OneLineOf(const RdtSchemata& schemata) {
  std::string text = SchemataText(schemata);
  std::ranges::replace(text, '\n', ' ');
  return std::string(Trim(text));
}

ClassContext ContextOf(const Machine& machine) {
  return {.door =
              [] {
                return CreationWays{.holds_starts = true,
                                    .io_priority = true,
                                    .scheduler = true,
                                    .memory_policy = true};
              },
          .machine = &machine};
}

}  // namespace

StatusOr<RdtMachine> ParseRdtMachine(std::string_view text, const Machine& machine) {
  RdtMachine read;
  int64_t least = 1;
  bool split = false;
  for (const std::string_view word : Split(text, ',')) {
    if (word == "cdp") {
      split = true;
      continue;
    }
    const size_t colon = word.find(':');
    const std::string_view key = word.substr(0, colon);
    // A missing or malformed number counts as 0, which is refused below.
    const int64_t number =
        colon == std::string_view::npos ? 0 : ParseInt(word.substr(colon + 1)).value_or(0);
    const int64_t most = key == "mb" ? 100 : kMostCacheBits;
    const bool known = key == "l2" || key == "l3" || key == "mb" || key == "min";
    if (!known || number < 1 || number > most) {
      return InvalidArgument(
          "\"{}\": there are l3:BITS, l2:BITS, min:BITS (1 to 64), mb:STEP (1 to 100) and cdp",
          Printable(word, 64));
    }
    if (key == "l3") read.l3 = MakeCache(number, machine.l3_groups().size());
    if (key == "l2") read.l2 = MakeCache(number, machine.l2_groups().size());
    if (key == "min") least = number;
    if (key == "mb") {
      const auto step = static_cast<uint32_t>(number);
      read.mb =
          RdtBandwidth{.least = step, .step = step, .ids = CacheIds(machine.l3_groups().size())};
    }
  }
  for (std::optional<RdtCache>* const cache : {&read.l2, &read.l3}) {
    if (!*cache) continue;
    (*cache)->split = split;
    (*cache)->min_bits = static_cast<uint32_t>(least);
  }
  return read;
}

StatusOr<std::vector<std::pair<std::string, std::string>>> PreviewSchemata(
    const RdtConfig& config, const RdtMachine& machine) {
  RESMGR_ASSIGN_OR_RETURN(RdtClassSchemata computed, ComputeRdt(config, machine));
  std::vector<std::pair<std::string, std::string>> all;
  for (auto& [name, schemata] : computed) {
    if (machine.mb) RoundBandwidth(*machine.mb, schemata);
    if (name.empty() && schemata.empty()) continue;
    all.emplace_back(name.empty() ? std::string(kRootClass) : name, OneLineOf(schemata));
  }
  return all;
}

ClassPreview::ClassPreview(const Machine& machine, ClassesConfig config,
                           std::optional<RdtMachine> rdt)
    : machine_(machine), config_(std::move(config)), kinds_(MakeClassKinds(ContextOf(machine))) {
  if (!rdt) return;
  // The caller has checked the schemata and reported their errors.
  if (auto schemata = PreviewSchemata(config_.rdt, *rdt); schemata.ok())
    schemata_ = *std::move(schemata);
}

StatusOr<ChosenClasses> ClassPreview::Choose(const ClassedContainer& container) const {
  ChosenClasses chosen;
  for (const auto& kind : kinds_)
    RESMGR_RETURN_IF_ERROR(kind->Choose(container, config_, chosen));
  return chosen;
}

ChosenClasses ClassPreview::ChooseLeniently(const ClassedContainer& container) const {
  ChosenClasses chosen;
  for (const auto& kind : kinds_)
    kind->Choose(container, config_, chosen).IgnoreError();
  return chosen;
}

void ClassPreview::AddFree(const ChosenClasses& chosen, const CpuSet& own, FreeOf& free) const {
  using Interrupts = IsolationConfig::Interrupts;
  const IsolationConfig& wanted = chosen.isolation.isolation;
  if (own.empty()) return;
  if (wanted.interrupts == Interrupts::kIsolate) free.interrupts |= own;
  if (wanted.interrupts == Interrupts::kHousekeeping)
    free.interrupts |= own - machine_.WithSiblings(CpuSet{own.First()});
  if (wanted.workqueues == IsolationConfig::Workqueues::kIsolate) free.workqueues |= own;
}

void ClassPreview::DescribeIsolation(const IsolationWish& wish, const CpuSet& own,
                                     const FreeOf& free,
                                     std::vector<PreviewedClass>& classes) const {
  const auto mask_of_others = [this](const CpuSet& kept) {
    return FormatCpuMask(machine_.online() - kept, "");
  };
  const std::map<std::string_view, std::string> values = {
      {"interrupts", mask_of_others(free.interrupts)},
      {"workqueues", mask_of_others(free.workqueues)},
      {"quota", "max"},
      {"partition", own.ToString()},
      {"idle", wish.isolation.max_latency},
      {"clock", wish.isolation.governor}};
  for (const AskedClass& one : IsolationClasses(wish.isolation, wish.source))
    classes.push_back({std::string(one.kind), one.name, one.source, values.at(one.kind)});
  if (wish.affinity.any())
    classes.push_back({"interrupts", "affinity", wish.source, wish.affinity.ToString()});
}

std::string ClassPreview::ValueOf(std::string_view kind, std::string_view name) const {
  if (kind == "rdt") {
    const std::string_view shown = IsRdtRoot(name) ? kRootClass : name;
    for (const auto& [known, schemata] : schemata_)
      if (known == shown) return schemata;
  }
  if (kind == "scheduling") {
    const SchedulingClassConfig* const found = config_.scheduling.Find(name);
    if (found != nullptr) return ShownSettings(*found);
  }
  return "";
}

std::vector<PreviewedClass> ClassPreview::Describe(const ChosenClasses& chosen, const CpuSet& own,
                                                   const FreeOf& free) const {
  std::vector<PreviewedClass> classes;
  DescribeIsolation(chosen.isolation, own, free, classes);
  const MemoryWish& memory = chosen.memory;
  std::string files;
  for (const auto& [file, text] : memory.files)
    files += fmt::format("{}{}={}", files.empty() ? "" : " ", file, text);
  if (!files.empty()) classes.push_back({"memory", memory.name, memory.source, files});
  if (memory.policy) {
    classes.push_back(
        {"memory", memory.policy_name, memory.policy_source, PolicyText(*memory.policy)});
  }
  for (const auto& [kind, choice] : chosen.by_name)
    classes.push_back({kind, choice.name, choice.source, ValueOf(kind, choice.name)});
  return classes;
}

}  // namespace resmgr
