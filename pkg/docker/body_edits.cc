// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/body_edits.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/docker/container_body.h"
#include "pkg/docker/docker_labels.h"
#include "pkg/docker/host_config.h"
#include "pkg/docker/json_text.h"
#include "pkg/model/resource_fields.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kPidsMax = "pids.max";
constexpr std::string_view kMemoryLow = "memory.low";
constexpr std::string_view kSwapMax = "memory.swap.max";

// The field of HostConfig that corresponds to a file of cgroup v2; "" if there is none.
std::string_view FieldOfFile(std::string_view file) {
  if (file == kPidsMax) return "PidsLimit";
  return file == kMemoryLow ? "MemoryReservation" : "";
}

// Replacements of pieces of a text; the pieces do not overlap.
class Splices {
 public:
  explicit Splices(std::string_view text) : text_(text) {}

  // `part` is a view into the text.
  void Replace(std::string_view part, std::string with) {
    all_.push_back({OffsetOf(part), part.size(), std::move(with)});
  }
  // Adds members at the end of the object.
  void Append(std::string_view object, std::string members) {
    const bool empty = Trim(object.substr(1, object.size() - 2)).empty();
    all_.push_back(
        {OffsetOf(object) + object.size() - 1, 0, (empty ? "" : ",") + std::move(members)});
  }
  std::string Apply() {
    std::ranges::stable_sort(all_, {}, &Splice::offset);
    std::string result;
    size_t at = 0;
    for (const Splice& splice : all_) {
      result += text_.substr(at, splice.offset - at);
      result += splice.with;
      at = splice.offset + splice.size;
    }
    return result.append(text_.substr(at));
  }

 private:
  struct Splice {
    size_t offset;
    size_t size;
    std::string with;
  };

  size_t OffsetOf(std::string_view part) const {
    return static_cast<size_t>(part.data() - text_.data());
  }

  std::string_view text_;
  std::vector<Splice> all_;
};

std::string AsMembers(const NewMembers& members) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : members)
    parts.push_back(fmt::format("\"{}\":{}", name, value));
  return JoinJson(parts);
}

// Replaces the last member of each name, which is the one that counts; a member that is missing is
// added to `added`.
void SetMembers(std::string_view object, const NewMembers& members, Splices& splices,
                NewMembers& added) {
  for (const auto& [name, value] : members) {
    const std::string_view last = LastMember(object, name);
    if (last.empty()) {
      added.emplace_back(name, value);
    } else {
      splices.Replace(last, value);
    }
  }
}
void SetMembers(std::string_view object, const NewMembers& members, Splices& splices) {
  NewMembers added;
  SetMembers(object, members, splices, added);
  if (!added.empty()) splices.Append(object, AsMembers(added));
}

void AddNumber(std::string_view name, const std::optional<int64_t>& value, NewMembers& members) {
  if (value) members.emplace_back(name, fmt::format("{}", *value));
}

// Adds the numbers that `value_of` returns for kHostConfigNumbers: with `decided` those that the
// policy decides, else the others.
void AddNumbers(bool decided,
                const std::function<std::optional<int64_t>(const NumberField&)>& value_of,
                NewMembers& members) {
  for (const auto& [field, name] : kHostConfigNumbers) {
    const NumberField& row = *NumberFieldOf(field);
    if (row.decided() == decided) AddNumber(name, value_of(row), members);
  }
}

void AddSets(const ResourceValues& values, NewMembers& members) {
  if (values.cpus) members.emplace_back("CpusetCpus", EncodeJsonText(values.cpus->ToString()));
  if (values.mems) members.emplace_back("CpusetMems", EncodeJsonText(values.mems->ToString()));
}

// Replaces the CPU limit by NanoCpus, and drops the period. A quota that lifts the limit stays a
// quota, which dockerd accepts for containers with either kind of limit.
void UseNanoCpus(const std::optional<int64_t>& quota, const std::optional<int64_t>& period,
                 NewMembers& members) {
  const bool limits = quota.value_or(0) > 0;
  std::erase_if(members, [limits](const auto& member) {
    return member.first == "CpuPeriod" || (limits && member.first == "CpuQuota");
  });
  if (!limits) return;
  const double cpus = static_cast<double>(*quota) /
                      static_cast<double>(period.value_or(0) > 0 ? *period : kNanoCpusPeriod);
  members.emplace_back("NanoCpus", fmt::format("{}", std::llround(cpus * 1e9)));
}

// Adds the file's value if Docker has a field for it; other files are left out. kInvalidArgument: a
// malformed value.
Status AddFile(std::string_view file, std::string_view value, NewMembers& members) {
  const std::string_view field = FieldOfFile(file);
  if (field.empty()) return OkStatus();
  const bool unlimited = value == "max" && file == kPidsMax;
  const auto number = ParseUint(value);
  if (!unlimited && !(number && std::in_range<int64_t>(*number))) {
    return InvalidArgument("unified {}: \"{}\" is not a number", file, Printable(value));
  }
  AddNumber(field, unlimited ? -1 : static_cast<int64_t>(*number), members);
  return OkStatus();
}

// MemorySwap counts memory and swap together, and dockerd takes it only with a limit of memory.
Status AddSwap(std::string_view value, std::optional<int64_t> memory_limit, NewMembers& members) {
  const std::optional<uint64_t> swap = ParseUint(value);
  if (value == "max") {
    AddNumber("MemorySwap", -1, members);
    return OkStatus();
  }
  if (!swap || !std::in_range<int64_t>(*swap))
    return InvalidArgument("unified {}: \"{}\" is not a number", kSwapMax, Printable(value));
  if (memory_limit.value_or(0) <= 0) return OkStatus();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t room = kMost - *memory_limit;
  AddNumber("MemorySwap", *memory_limit + std::min(static_cast<int64_t>(*swap), room), members);
  return OkStatus();
}

// `has_cpus`: the request limits CPU time by NanoCpus.
NewMembers ResourcesOf(Operation operation, const Adjustment& adjustment, bool has_cpus) {
  NewMembers members;
  const auto value_of = [operation, &adjustment](const NumberField& row) {
    return DockerHas(operation, row.field) ? NumberIn(adjustment, row) : std::nullopt;
  };
  AddNumbers(true, value_of, members);
  AddSets(adjustment.values, members);
  const bool limits = adjustment.values.cpu_quota || adjustment.values.cpu_period;
  // dockerd refuses a request with both kinds of CPU limit.
  if (limits && has_cpus) members.emplace_back("NanoCpus", "0");
  if (adjustment.clears_cpus()) members.emplace_back("CpusetCpus", "\"\"");
  if (adjustment.clears_mems()) members.emplace_back("CpusetMems", "\"\"");
  AddNumbers(false, value_of, members);
  return members;
}

// Adds the members of HostConfig that only a creation has.
Status AddOfCreation(std::string_view object, const WideAdjustment& wide, NewMembers& members) {
  if (wide.cgroup_parent) {
    const std::string name = TextOf(HostConfigMember(object, "CgroupParent"));
    members.emplace_back("CgroupParent",
                         EncodeJsonText(CgroupForEngine(*wide.cgroup_parent, name)));
  }
  return AddLists(object, wide, members);
}

Status AddFiles(const WideAdjustment* wide, NewMembers& members) {
  if (wide == nullptr) return OkStatus();
  for (const auto& edit : wide->unified)
    if (edit.value) RESMGR_RETURN_IF_ERROR(AddFile(edit.key, *edit.value, members));
  return OkStatus();
}

// Adds the files that only a creation can set. `config` is its HostConfig, or the object that
// stands for it.
Status AddFilesOfCreation(std::string_view config, const WideAdjustment& wide,
                          NewMembers& members) {
  for (const auto& edit : wide.unified) {
    if (!edit.value) continue;
    if (IsBlockioFile(edit.key)) RESMGR_RETURN_IF_ERROR(AddBlockio(edit.key, *edit.value, members));
    if (edit.key != kSwapMax || wide.memory_swap_limit) continue;
    const std::string_view memory = LastMember(config, "Memory");
    const std::optional<int64_t> requested = memory.empty() ? std::nullopt : ParseInt(memory);
    RESMGR_RETURN_IF_ERROR(
        AddSwap(*edit.value, wide.memory_limit ? wide.memory_limit : requested, members));
  }
  return OkStatus();
}

// The program becomes the entry point: otherwise dockerd would use the image's.
NewMembers CommandOf(const std::vector<std::string>& args) {
  std::vector<std::string> rest;
  for (size_t i = 1; i < args.size(); ++i)
    rest.push_back(EncodeJsonText(args[i]));
  return {{"Entrypoint", "[" + EncodeJsonText(args.front()) + "]"},
          {"Cmd", "[" + JoinJson(rest) + "]"}};
}

// Returns the list of "NAME=VALUE" with the edits; other elements keep their text. A name alone
// unsets the variable, also if the image sets it.
std::string EditEnvironment(std::string_view list, const KeyedEdits<std::string>& edits) {
  std::vector<std::string> parts = ElementsWithout(list, [&edits](std::string_view element) {
    const std::string text = TextOf(element);
    return edits.Find(text.substr(0, text.find('='))) != nullptr;
  });
  for (const auto& edit : edits)
    parts.push_back(EncodeJsonText(edit.value ? edit.key + "=" + *edit.value : edit.key));
  return "[" + JoinJson(parts) + "]";
}

// Edits of labels, including annotations, which are labels in Docker.
class LabelEdits {
 public:
  explicit LabelEdits(const WideAdjustment& wide) {
    for (const auto& edit : wide.labels)
      Add(edit.key, edit.value);
    for (const auto& edit : wide.annotations)
      Add(std::string(kAnnotationPrefix) + edit.key, edit.value);
  }
  bool empty() const { return edits_.empty(); }
  // `last`: this is the last Labels object, which gets the new labels.
  std::string Edit(std::string_view object, bool last) const {
    std::vector<std::string> parts;
    if (IsJsonObject(object)) {
      ForEachMember(object, [this, &parts](std::string_view name, std::string_view value) {
        if (edits_.Find(DecodeJsonText(name)) != nullptr) return;
        parts.push_back(std::string(name) + ":" + std::string(value));
      });
    }
    for (const auto& edit : edits_) {
      if (!last || !edit.value) continue;
      parts.push_back(EncodeJsonText(edit.key) + ":" + EncodeJsonText(*edit.value));
    }
    return "{" + JoinJson(parts) + "}";
  }

 private:
  void Add(std::string_view key, const std::optional<std::string>& value) {
    if (value) {
      edits_.Set(key, *value);
    } else {
      edits_.Remove(key);
    }
  }

  KeyedEdits<std::string> edits_;
};

void EditLabels(std::string_view object, const LabelEdits& edits, Splices& splices,
                NewMembers& added) {
  const std::string_view last = LastMember(object, "Labels");
  if (!IsJsonObject(last)) {
    added.emplace_back("Labels", edits.Edit("", true));
    return;
  }
  // dockerd merges repeated objects, so all of them are edited.
  ForEachMember(object, [&](std::string_view name, std::string_view value) {
    if (!IsField(name, "Labels")) return;
    const bool is_last = value.data() == last.data();
    if (IsJsonObject(value)) splices.Replace(value, edits.Edit(value, is_last));
  });
}

// Returns the body with a new HostConfig that has copies of the members beside it: dockerd ignores
// those members once there is a HostConfig. "": there is a HostConfig already, or there are no such
// members.
std::string WithHostConfig(std::string_view object) {
  if (IsJsonObject(LastMember(object, "HostConfig"))) return "";
  const std::vector<std::string> members = MembersBesideHostConfig(object);
  if (members.empty()) return "";
  Splices splices(object);
  splices.Append(object, fmt::format("\"HostConfig\":{{{}}}", JoinJson(members)));
  return splices.Apply();
}

// Clears the cpusets beside HostConfig, which dockerd would use if HostConfig had none.
void ClearCpusBeside(std::string_view object, Splices& splices) {
  ForEachMember(object, [&splices](std::string_view name, std::string_view value) {
    const bool list = IsField(name, "CpusetCpus") || IsField(name, "Cpuset");
    if (list && IsJsonText(value)) splices.Replace(value, "\"\"");
  });
}

StatusOr<std::string> EditCreate(Operation operation, std::string_view object,
                                 const Adjustment& adjustment, Splices splices) {
  NewMembers added;
  const std::string_view config = LastMember(object, "HostConfig");
  bool has_cpus = false;
  // dockerd merges repeated objects.
  ForEachMember(object, [&has_cpus](std::string_view name, std::string_view value) {
    if (!IsField(name, "HostConfig") || !IsJsonObject(value)) return;
    has_cpus = has_cpus || !LastMember(value, "NanoCpus").empty();
  });
  NewMembers resources = ResourcesOf(operation, adjustment, has_cpus);
  RESMGR_RETURN_IF_ERROR(AddFiles(adjustment.wide(), resources));
  if (adjustment.wide() != nullptr) {
    RESMGR_RETURN_IF_ERROR(
        AddFilesOfCreation(IsJsonObject(config) ? config : "{}", *adjustment.wide(), resources));
    RESMGR_RETURN_IF_ERROR(AddOfCreation(object, *adjustment.wide(), resources));
  }
  if (!resources.empty()) {
    if (IsJsonObject(config)) {
      SetMembers(config, resources, splices);
    } else {
      // There is no HostConfig, or the last one is null. At a null Go forgets the earlier ones, so
      // only the one that is added here counts.
      added.emplace_back("HostConfig", "{" + AsMembers(resources) + "}");
    }
  }
  if (const WideAdjustment* const wide = adjustment.wide()) {
    if (!wide->environment.empty()) {
      const std::string_view list = LastMember(object, "Env");
      std::string edited = EditEnvironment(list, wide->environment);
      if (list.empty()) {
        added.emplace_back("Env", std::move(edited));
      } else {
        splices.Replace(list, std::move(edited));
      }
    }
    if (wide->args && !wide->args->empty())
      SetMembers(object, CommandOf(*wide->args), splices, added);
    const LabelEdits labels(*wide);
    if (!labels.empty()) EditLabels(object, labels, splices, added);
  }
  if (adjustment.clears_cpus()) ClearCpusBeside(object, splices);
  if (!added.empty()) splices.Append(object, AsMembers(added));
  return splices.Apply();
}

}  // namespace

bool DockerHas(Operation operation, Field field) {
  switch (field) {
    case Field::kCpusetCpus:
    case Field::kCpusetMems:
    case Field::kCpuShares:
    case Field::kCpuQuota:
    case Field::kCpuPeriod:
    case Field::kMemoryLimit:
    case Field::kMemorySwapLimit:
    case Field::kUnified:  // files that DockerLeavesOut does not name
      return true;
    case Field::kOomScoreAdj:
    case Field::kEnvironment:
    case Field::kArgs:
    case Field::kMounts:
    case Field::kDevices:
    case Field::kLabels:
    case Field::kAnnotations:
    case Field::kCgroupParent:
    case Field::kResourceLimits:
    case Field::kSeccompProfile:
      return operation != Operation::kUpdateContainerResources;
    default:
      return false;
  }
}

bool DockerLeavesOut(Operation operation, const FieldChange& change) {
  switch (change.field) {
    case Field::kUnified:
      if (IsBlockioFile(change.key) || change.key == kSwapMax)
        return operation == Operation::kUpdateContainerResources;
      return FieldOfFile(change.key).empty();
    case Field::kHugepageLimits:
    case Field::kBlockioClass:
    case Field::kRdtClass:
      return true;
    case Field::kAnnotations:
    case Field::kOomScoreAdj:
      return operation == Operation::kUpdateContainerResources;
    default:
      return false;
  }
}

StatusOr<std::string> EditBody(Operation operation, std::string_view body,
                               const Adjustment& adjustment) {
  const std::string_view object = Trim(body);
  if (operation != Operation::kUpdateContainerResources && !adjustment.empty()) {
    const std::string whole = WithHostConfig(object);
    const std::string_view edited = whole.empty() ? body : whole;
    return EditCreate(operation, Trim(edited), adjustment, Splices(edited));
  }
  Splices splices(body);
  const bool has_cpus = !LastMember(object, "NanoCpus").empty();
  NewMembers resources = ResourcesOf(operation, adjustment, has_cpus);
  RESMGR_RETURN_IF_ERROR(AddFiles(adjustment.wide(), resources));
  SetMembers(object, resources, splices);
  return splices.Apply();
}

std::string MakeUpdateBody(const ResourceValues& values, LimitedBy limited_by) {
  NewMembers members;
  AddNumbers(
      true, [&values](const NumberField& row) { return values.*row.value; }, members);
  AddSets(values, members);
  if (limited_by == LimitedBy::kNanoCpus) UseNanoCpus(values.cpu_quota, values.cpu_period, members);
  return "{" + AsMembers(members) + "}";
}

StatusOr<std::string> MakeUpdateBody(const ResourceChange& change, LimitedBy limited_by) {
  NewMembers members;
  const LinuxResources& resources = change.resources;
  const auto text = [&members](std::string_view name, const std::optional<std::string>& value) {
    if (value && !value->empty()) members.emplace_back(name, EncodeJsonText(*value));
  };
  const auto value_of = [&change](const NumberField& row) {
    if (row.field == Field::kMemorySwapLimit) return change.memory_swap_limit;
    const bool has = DockerHas(Operation::kUpdateContainerResources, row.field);
    return has ? change.resources.*row.requested : std::nullopt;
  };
  AddNumbers(true, value_of, members);
  text("CpusetCpus", resources.cpuset_cpus);
  text("CpusetMems", resources.cpuset_mems);
  AddNumbers(false, value_of, members);
  for (const auto& [file, value] : change.unified)
    RESMGR_RETURN_IF_ERROR(AddFile(file, value, members));
  if (limited_by == LimitedBy::kNanoCpus)
    UseNanoCpus(resources.cpu_quota, resources.cpu_period, members);
  return "{" + AsMembers(members) + "}";
}

bool WantsNanoCpus(const Status& refusal) {
  return Message(refusal).find("NanoCPUs has already been set") != std::string_view::npos;
}

}  // namespace resmgr::docker
