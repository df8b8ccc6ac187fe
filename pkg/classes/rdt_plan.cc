// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/rdt_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr const char* kTogether = "rdt";

// Whether no mask and no bandwidth grows.
bool Shrinks(const RdtSchemata& to, const RdtSchemata& from) {
  for (const auto& [resource, values] : to) {
    for (const auto& [id, value] : values) {
      const uint64_t* const had = FindSchema(from, resource, id);
      if (had == nullptr) return false;
      const bool grows = resource == "MB" ? value > *had : (value & ~*had) != 0;
      if (grows) return false;
    }
  }
  return true;
}

bool AssignsByCpus(const RdtConfig& config) {
  return config.assign == RdtConfig::Assign::kAuto || config.assign == RdtConfig::Assign::kCpus;
}

class RdtPlanner {
 public:
  RdtPlanner(const ClassWork& work, ClassPlan& plan)
      : work_(work), config_(work.config.rdt), plan_(plan) {}

  void Plan() {
    const Status possible = Compute();
    if (possible.ok()) {
      AddGroups();
      AddCpus();
    }
    for (const auto& [name, partition] : config_.partitions)
      for (const auto& [class_name, one] : partition.classes)
        plan_.parts.push_back({.kind = kRdt,
                               .name = class_name.empty() ? "system/default" : class_name,
                               .paths = PathsOf(RdtGroupOf(class_name, config_), true),
                               .possible = possible});
    AddForeign();
    for (size_t i = 0; i < work_.subjects.size(); ++i)
      if (const ClassChoice* const choice = work_.subjects[i].chosen.Find(kRdt))
        AddPart(i, *choice, possible);
  }

 private:
  using Assign = RdtConfig::Assign;

  Status Compute() {
    StatusOr<RdtHost> host = ReadRdt(work_.host);
    if (!host.ok()) {
      // Unless resctrl is missing, the error may pass: containers stay in their groups until then.
      if (host.status().code() != StatusCode::kNotFound) {
        for (HostValue& value : work_.host.HeldBelow(kResctrlRoot))
          plan_.Add(std::move(value));
      }
      return host.status();
    }
    host_ = *std::move(host);
    std::ranges::copy_if(host_.groups, std::back_inserter(others_), [&](const std::string& group) {
      return !group.starts_with(config_.prefix);
    });
    RESMGR_ASSIGN_OR_RETURN(computed_, ComputeRdt(config_, host_.machine));
    if (host_.machine.mb) {
      for (auto& [name, schemata] : computed_)
        RoundBandwidth(*host_.machine.mb, schemata);
    }
    size_t wanted = 1;
    for (const auto& [name, schemata] : computed_)
      if (!name.empty()) ++wanted;
    if (wanted + others_.size() > host_.most_groups) {
      return ResourceExhausted(
          "resctrl has {} groups at most: the configuration needs {} with the root, and others "
          "have {}",
          host_.most_groups, wanted, others_.size());
    }
    for (const std::string& group : others_)
      RESMGR_RETURN_IF_ERROR(CheckForeign(group));
    return OkStatus();
  }
  // Checks that a group of others that is not "shareable" has no bits that classes need: the kernel
  // would refuse them.
  Status CheckForeign(const std::string& group) {
    const StatusOr<std::string> mode = work_.host.files().Read(RdtGroupFile(group, "mode"));
    if (!mode.ok() || Trim(*mode) == "shareable") return OkStatus();
    const StatusOr<std::string> text = work_.host.files().Read(RdtGroupFile(group, "schemata"));
    if (!text.ok()) return OkStatus();
    const RdtSchemata theirs = ParseSchemata(*text);
    for (const auto& [name, schemata] : computed_) {
      for (const auto& [resource, values] : schemata) {
        if (resource == "MB") continue;
        for (const auto& [id, mask] : values) {
          const uint64_t* const taken = FindSchema(theirs, resource, id);
          if (taken != nullptr && (*taken & mask) != 0)
            return FailedPrecondition(
                "class \"{}\": {}:{}={:x} has bits that the group {} of others has alone ({:x})",
                name, resource, id, mask, Printable(group, 64), *taken);
        }
      }
    }
    return OkStatus();
  }

  // The files that give a group its masks and, with `cpus`, its CPUs.
  static std::vector<std::string> PathsOf(const std::string& group, bool cpus) {
    if (group.empty()) return {RdtGroupFile(group, "schemata")};
    std::vector<std::string> paths = {RdtGroupPath(group) + "/.", RdtGroupFile(group, "schemata")};
    if (cpus) paths.push_back(RdtGroupFile(group, "cpus_list"));
    return paths;
  }
  void AddGroups() {
    std::vector<HostValue> shrinking;
    std::vector<HostValue> growing;
    std::vector<HostValue> groups;
    for (const auto& [name, schemata] : computed_) {
      if (schemata.empty() && name.empty()) continue;
      const std::string group = RdtGroupOf(name, config_);
      if (!group.empty()) {
        groups.push_back({.path = RdtGroupPath(group) + "/.",
                          .text = std::string(HostFiles::kThere),
                          .together = kTogether});
      }
      if (schemata.empty()) continue;
      const std::string path = RdtGroupFile(group, "schemata");
      const StatusOr<std::string> now = work_.host.files().Read(path);
      const bool shrinks = now.ok() && Shrinks(schemata, ParseSchemata(*now));
      (shrinks ? shrinking : growing)
          .push_back({.path = path, .text = SchemataText(schemata), .together = kTogether});
    }
    for (std::vector<HostValue>* const list : {&shrinking, &groups, &growing})
      for (HostValue& value : *list)
        plan_.Add(std::move(value));
  }

  void AddCpus() {
    if (!AssignsByCpus(config_)) return;
    std::map<std::string, CpuSet> cpus;
    CpuSet taken;
    for (const ClassSubject& subject : work_.subjects) {
      const ClassChoice* const choice = subject.chosen.Find(kRdt);
      if (choice == nullptr || !HasOwnRdtCpus(subject, config_)) continue;
      cpus[RdtGroupOf(choice->name, config_)] |= subject.cpus;
      taken |= subject.cpus;
    }
    for (const ClassPool& pool : work_.pools) {
      const auto found = pool.classes.find(kRdt);
      if (found == pool.classes.end()) continue;
      // A CPU can be in one group only: that of the narrowest pool, which comes after those around
      // it.
      const CpuSet own = pool.cpus - taken;
      for (auto& [group, set] : cpus)
        set = set - own;
      cpus[RdtGroupOf(found->second, config_)] |= own;
    }
    const CpuSet online = OnlineCpus(work_.host.files());
    for (auto& [group, set] : cpus) {
      if (!online.empty()) set &= online;
      // CPUs in no group belong to the root group.
      if (group.empty() || set.empty()) continue;
      plan_.Add({.path = RdtGroupFile(group, "cpus_list"), .text = set.ToString()});
    }
  }

  // Adds a part for `classes` that lists the groups of others.
  void AddForeign() {
    std::string names;
    for (const std::string& group : others_)
      names.append(names.empty() ? "" : ", ").append(Printable(group, 64));
    if (names.empty()) return;
    plan_.parts.push_back({.kind = kRdt,
                           .name = "(others)",
                           .note = fmt::format("groups that are not touched: {}", names)});
  }

  void AddPart(size_t index, const ClassChoice& choice, const Status& possible) {
    const ClassSubject& subject = work_.subjects[index];
    ClassPart part{.subject = index,
                   .kind = kRdt,
                   .name = choice.name,
                   .source = choice.source,
                   .way = kRdtByTasks,
                   .possible = possible};
    const std::string group = RdtGroupOf(choice.name, config_);
    if (possible.ok() && !computed_.contains(IsRdtRoot(choice.name) ? "" : choice.name))
      part.possible = NotFound("there is no class \"{}\" in classes.rdt", choice.name);
    if (config_.assign == Assign::kRuntime) {
      part.way = kRdtByRuntime;
    } else if (HasOwnRdtCpus(subject, config_) || HasRdtOfPool(subject, work_)) {
      part.way = kRdtByCpu;
    } else if (config_.assign == Assign::kCpus && part.possible.ok()) {
      part.possible = FailedPrecondition("the container has no CPUs for itself alone");
    }
    part.paths = PathsOf(group, part.way == kRdtByCpu);
    plan_.parts.push_back(std::move(part));
  }

  const ClassWork& work_;
  const RdtConfig& config_;
  ClassPlan& plan_;
  RdtHost host_;
  RdtClassSchemata computed_;
  std::vector<std::string> others_;  // the existing groups of others
};

constexpr uint64_t kMostPercent = 100;
constexpr int kInfoMaskBase = 16;

// Entries of the root directory that are not groups.
constexpr std::array<std::string_view, 10> kNoGroups = {
    "info",  "mon_groups", "mon_data", "cpus", "cpus_list",
    "tasks", "schemata",   "mode",     "size", "mba_MBps_event"};

class RdtReader {
 public:
  explicit RdtReader(HostKeeper& host) : host_(host) {}

  StatusOr<RdtHost> ReadAll() {
    const std::string schemata = RdtGroupFile("", "schemata");
    const StatusOr<std::string> now = host_.files().Read(schemata);
    if (!now.ok() && now.status().code() == StatusCode::kNotFound) {
      return NotFound("there is no {}: resctrl is not mounted, or the machine has no RDT",
                      schemata);
    }
    if (!now.ok()) return now.status();
    root_ = ParseSchemata(*now);
    RESMGR_ASSIGN_OR_RETURN(const std::string first, host_.ReadFirst(schemata));
    first_ = ParseSchemata(first);
    RdtHost read;
    read.most_groups = std::numeric_limits<uint32_t>::max();
    RESMGR_ASSIGN_OR_RETURN(read.machine.l2, ReadCache("L2", read.most_groups));
    RESMGR_ASSIGN_OR_RETURN(read.machine.l3, ReadCache("L3", read.most_groups));
    RESMGR_ASSIGN_OR_RETURN(read.machine.mb, ReadBandwidth(read.most_groups));
    for (const std::string& name : host_.files().List(kResctrlRoot)) {
      if (std::ranges::find(kNoGroups, name) == kNoGroups.end() &&
          host_.files().Read(RdtGroupFile(name, "schemata")).ok())
        read.groups.push_back(name);
    }
    return read;
  }

 private:
  StatusOr<std::string> Info(std::string_view resource, std::string_view file) {
    RESMGR_ASSIGN_OR_RETURN(
        const std::string text,
        host_.files().Read(fmt::format("{}/info/{}/{}", kResctrlRoot, resource, file)));
    return std::string(Trim(text));
  }
  StatusOr<uint64_t> InfoNumber(std::string_view resource, std::string_view file, int base = 10) {
    RESMGR_ASSIGN_OR_RETURN(const std::string text, Info(resource, file));
    if (const std::optional<uint64_t> number = ParseUint(text, base)) return *number;
    return InvalidArgument("{}/info/{}/{} is \"{}\" and no number", kResctrlRoot, resource, file,
                           Printable(text, 64));
  }
  std::vector<uint32_t> IdsOf(std::string_view resource) const {
    std::vector<uint32_t> ids;
    const auto found = root_.find(resource);
    if (found == root_.end()) return ids;
    for (const auto& [id, value] : found->second)
      ids.push_back(id);
    return ids;
  }
  Status CountGroups(std::string_view resource, uint32_t& most) {
    RESMGR_ASSIGN_OR_RETURN(const uint64_t count, InfoNumber(resource, "num_closids"));
    most = static_cast<uint32_t>(std::min<uint64_t>(most, count));
    return OkStatus();
  }

  StatusOr<std::optional<RdtCache>> ReadCache(std::string_view level, uint32_t& most) {
    RdtCache cache;
    std::string resource(level);
    cache.ids = IdsOf(resource);
    if (cache.ids.empty()) {
      resource += "CODE";
      cache.split = true;
      cache.ids = IdsOf(resource);
    }
    if (cache.ids.empty()) return std::optional<RdtCache>();
    RESMGR_ASSIGN_OR_RETURN(cache.mask, InfoNumber(resource, "cbm_mask", kInfoMaskBase));
    if (cache.mask == 0 || (cache.mask & (cache.mask + 1)) != 0)
      return InvalidArgument("{}/info/{}/cbm_mask is {:#x}, which is no mask from bit 0",
                             kResctrlRoot, resource, cache.mask);
    RESMGR_ASSIGN_OR_RETURN(const uint64_t least, InfoNumber(resource, "min_cbm_bits"));
    cache.min_bits = static_cast<uint32_t>(std::clamp<uint64_t>(least, 1, 64));
    cache.sparse = Info(resource, "sparse_masks").value_or("0") == "1";
    RESMGR_RETURN_IF_ERROR(CountGroups(resource, most));
    return std::optional(cache);
  }

  StatusOr<std::optional<RdtBandwidth>> ReadBandwidth(uint32_t& most) {
    RdtBandwidth bandwidth;
    bandwidth.ids = IdsOf("MB");
    if (bandwidth.ids.empty()) return std::optional<RdtBandwidth>();
    RESMGR_RETURN_IF_ERROR(CountGroups("MB", most));
    RESMGR_ASSIGN_OR_RETURN(const uint64_t least, InfoNumber("MB", "min_bandwidth"));
    bandwidth.least =
        static_cast<uint32_t>(std::min<uint64_t>(least, std::numeric_limits<uint32_t>::max()));
    bandwidth.step = static_cast<uint32_t>(
        std::clamp<uint64_t>(InfoNumber("MB", "bandwidth_gran").value_or(1), 1, kMostPercent));
    // The root group has the full bandwidth until this daemon's first write.
    const RdtSchemata& full = first_.contains("MB") ? first_ : root_;
    const uint64_t all = full.at("MB").begin()->second;
    const StatusOr<bool> mbps = all == kUnlimitedMbps ? true : IsMbpsMount();
    if (!mbps.ok()) return mbps.status();
    if (*mbps) {
      bandwidth.unit = RdtBandwidth::Unit::kMbps;
    } else if (all > kMostPercent) {
      bandwidth.unit = RdtBandwidth::Unit::kEighths;
    }
    return std::optional(bandwidth);
  }
  StatusOr<bool> IsMbpsMount() {
    const StatusOr<std::string> mounts = host_.files().Read(kMountsFile);
    if (!mounts.ok() && mounts.status().code() != StatusCode::kNotFound) return mounts.status();
    if (!mounts.ok()) return false;
    for (const std::string_view line : Split(*mounts, '\n')) {
      // A line of /proc/mounts: "resctrl /sys/fs/resctrl resctrl rw,relatime,mba_MBps 0 0"
      const std::vector<std::string_view> words = Split(line, ' ');
      constexpr size_t kType = 2;
      constexpr size_t kOptions = 3;
      if (words.size() <= kOptions || words[kType] != "resctrl") continue;
      const std::vector<std::string_view> options = Split(words[kOptions], ',');
      if (std::ranges::find(options, "mba_MBps") != options.end()) return true;
    }
    return false;
  }

  HostKeeper& host_;
  RdtSchemata root_;   // without the caches whose CPUs are all offline
  RdtSchemata first_;  // before this daemon's first write
};

}  // namespace

std::string RdtGroupOf(std::string_view class_name, const RdtConfig& config) {
  return IsRdtRoot(class_name) ? std::string() : fmt::format("{}{}", config.prefix, class_name);
}

bool HasOwnRdtCpus(const ClassSubject& subject, const RdtConfig& config) {
  return AssignsByCpus(config) && !subject.cpus.empty() && !subject.shares;
}

bool HasRdtOfPool(const ClassSubject& subject, const ClassWork& work) {
  const ClassChoice* const choice = subject.chosen.Find(kRdt);
  return AssignsByCpus(work.config.rdt) && choice != nullptr && !choice->by_pod &&
         std::ranges::any_of(work.pools, [&](const ClassPool& pool) {
           const auto found = pool.classes.find(kRdt);
           return pool.name == subject.pool && found != pool.classes.end() &&
                  found->second == choice->name;
         });
}

std::set<std::string> RdtGroupsOf(const RdtConfig& config) {
  std::set<std::string> groups;
  for (const auto& [name, partition] : config.partitions)
    for (const auto& [class_name, one] : partition.classes)
      if (!IsRdtRoot(class_name)) groups.insert(RdtGroupOf(class_name, config));
  return groups;
}

void PlanRdt(const ClassWork& work, ClassPlan& plan) {
  RdtPlanner(work, plan).Plan();
}

std::string RdtGroupPath(std::string_view group) {
  return fmt::format("{}{}{}", kResctrlRoot, group.empty() ? "" : "/", group);
}

std::string RdtGroupFile(std::string_view group, std::string_view file) {
  return fmt::format("{}/{}", RdtGroupPath(group), file);
}

StatusOr<RdtHost> ReadRdt(HostKeeper& host) {
  return RdtReader(host).ReadAll();
}

}  // namespace resmgr
