// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/kept_texts.h"
#include "pkg/classes/memory_wish.h"

namespace resmgr {
namespace {

constexpr std::string_view kMemory = "memory";
constexpr const char* kOnlyFiles = "annotated files";
constexpr const char* kOnlyPolicy = "annotated policy";
constexpr const char* kFormerPolicy = "former policy";
constexpr const char* kOfKubelet =
    "the kubelet sets such values, too (its gate MemoryQoS): the class wins for its containers";

std::string_view ClassOfPool(const ClassedContainer& container) {
  const auto named = container.of_pool.find(kMemory);
  return named == container.of_pool.end() ? std::string_view() : std::string_view(named->second);
}

class MemoryKind final : public ClassKind {
 public:
  explicit MemoryKind(ClassContext context)
      : context_(std::move(context)),
        begun_with_(context_.directory.empty() ? "" : context_.directory + "/memory-policies") {}

  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    MemoryWish of_pool = MemoryOfPool(ClassOfPool(container), container.placement.pool,
                                      container.memory_limit, config);
    StatusOr<MemoryWish> wish =
        MemoryOf(container.pod, container.name, container.memory_limit, config, of_pool);
    const Status status = wish.status();
    chosen.memory = status.ok() ? *std::move(wish) : std::move(of_pool);
    chosen.AddNote(chosen.memory.note);
    RESMGR_RETURN_IF_ERROR(status);
    const MemoryWish& memory = chosen.memory;
    if (config.absent == ClassesConfig::Absent::kRefuse && memory.by_pod && !memory.files.empty())
      chosen.asked.push_back({.kind = kMemory, .name = NameOf(memory), .source = memory.source});
    return ChoosePolicy(container, config, chosen);
  }
  // Only on cgroup v2: runtimes refuse these files on cgroup v1.
  void AtCreation(const ChosenClasses& chosen, const ClassesConfig&, bool unified,
                  Adjustment& adjustment) const override {
    if (chosen.memory.policy) adjustment.Wide().memory_policy = chosen.memory.policy;
    if (!unified) return;
    const bool docker = context_.ways().docker;
    for (const auto& [file, text] : chosen.memory.files) {
      // HostConfig has fields for these two files; the worker sets the others.
      const bool can = !docker || file == "memory.low" || file == "memory.swap.max";
      if (can) adjustment.Wide().unified.Set(file, text);
    }
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override {
    ways_.KeepOnly(work.subjects);
    // While classes are off, or under the null policy, there are no subjects.
    if (!work.subjects.empty()) begun_with_.KeepOnly(work.subjects);
    for (size_t i = 0; i < work.subjects.size(); ++i)
      AddPolicy(work.subjects[i], i, plan);
    if (work.config.memory.empty() && work.config.memory_files.empty()) return;
    HostFiles& files = work.host.files();
    const Status possible = HasCgroupV2(files) ? CheckController(files, kMemory)
                                               : NotFound("classes of memory need cgroup v2");
    if (!possible.ok() && work.config.absent == ClassesConfig::Absent::kRefuse)
      plan.absent[std::string(kMemory)] = {.reason = std::string(Message(possible))};
    const std::string note = *context_.kubelet_sets_memory ? kOfKubelet : "";
    for (const MemoryClassConfig& one : work.config.memory)
      plan.parts.push_back({.kind = kMemory, .name = one.name, .possible = possible, .note = note});
    for (size_t i = 0; i < work.subjects.size(); ++i) {
      const MemoryWish& wish = work.subjects[i].chosen.memory;
      if (wish.files.empty()) continue;
      ClassPart part{.subject = i,
                     .kind = kMemory,
                     .name = NameOf(wish),
                     .source = wish.source,
                     .possible = possible,
                     .note = note};
      if (possible.ok()) PlanFiles(work.subjects[i], work.host, part, plan);
      plan.parts.push_back(std::move(part));
    }
  }
  // If saving fails, the next process does not know the policies.
  void Apply(const ClassWork&, ClassPlan&) override { begun_with_.Save().IgnoreError(); }

 private:
  static std::string NameOf(const MemoryWish& wish) {
    return wish.name.empty() ? kOnlyFiles : wish.name;
  }
  Status ChoosePolicy(const ClassedContainer& container, const ClassesConfig& config,
                      ChosenClasses& chosen) const {
    RESMGR_ASSIGN_OR_RETURN(MemoryPolicyWish wish,
                            MemoryPolicyOf(container.pod, container.name, config));
    chosen.AddNote(wish.note);
    if (!wish.source.empty()) return SetPolicy(container, wish, chosen);
    const auto of_pool =
        std::ranges::find(config.memory, ClassOfPool(container), &MemoryClassConfig::name);
    if (of_pool == config.memory.end()) return OkStatus();
    wish.policy = of_pool->policy;
    wish.name = of_pool->name;
    wish.source = fmt::format("pool {}", container.placement.pool);
    // The policy comes from the pool's class and not from the pod, so an error is only noted.
    if (const Status status = SetPolicy(container, wish, chosen); !status.ok())
      chosen.AddNote(Message(status));
    return OkStatus();
  }
  Status SetPolicy(const ClassedContainer& container, const MemoryPolicyWish& wish,
                   ChosenClasses& chosen) const {
    if (!wish.policy) return OkStatus();
    if (!context_.ways().memory_policy || context_.machine == nullptr) {
      return InvalidArgument(
          "{}: the runtime can set no memory policy: that needs a plugin of NRI 0.12", wish.source);
    }
    const Placement& placement = container.placement;
    const StatusOr<MemoryPolicySettings> settings =
        ResolveMemoryPolicy(*wish.policy, placement.cpus.value_or(CpuSet()),
                            placement.mems.value_or(NodeSet()), *context_.machine);
    if (!settings.ok()) return InvalidArgument("{}: {}", wish.source, Message(settings.status()));
    chosen.memory.policy = *settings;
    chosen.memory.policy_name = wish.name;
    chosen.memory.policy_source = wish.source;
    return OkStatus();
  }
  // The policy with which the container was created, "": none; nullopt: it is not known.
  std::optional<std::string> BegunWith(const ClassSubject& subject) {
    if (subject.id.empty()) return subject.memory_policy;
    if (subject.memory_policy) begun_with_.Set(subject.id, *subject.memory_policy);
    const std::string* const known = begun_with_.Find(subject.id);
    return known == nullptr ? std::nullopt : std::optional(*known);
  }
  // Adds a part without paths: no other process can read or change a memory policy. A container
  // keeps the one with which it was created, whatever is chosen later.
  void AddPolicy(const ClassSubject& subject, size_t index, ClassPlan& plan) {
    const MemoryWish& wish = subject.chosen.memory;
    const std::optional<std::string> begun = BegunWith(subject);
    const std::string chosen = wish.policy ? PolicyText(*wish.policy) : "";
    if (chosen.empty() && begun.value_or("").empty()) return;
    ClassPart part{.subject = index,
                   .kind = kMemory,
                   .name = wish.policy_name.empty() ? kOnlyPolicy : wish.policy_name,
                   .source = wish.policy_source,
                   .way = kAtCreation,
                   .in_force = begun.value_or("unknown")};
    if (part.in_force.empty()) part.in_force = "none";
    if (chosen.empty()) {
      part.name = kFormerPolicy;
      part.source = "an earlier choice";
      part.note = "it is not chosen any more, and stays until the container ends";
    } else if (!begun) {
      part.note = fmt::format(
          "the container existed before this daemon: if it began without, only a new one gets {}",
          chosen);
    } else if (*begun != chosen) {
      part.note = fmt::format("{} is chosen now, and only a new container gets it", chosen);
    }
    plan.parts.push_back(std::move(part));
  }
  // The value that the kubelet asked for. The runtime did not check it, since the class replaced
  // it.
  static std::optional<std::string_view> RequestedOf(const ClassSubject& subject,
                                                     std::string_view file) {
    if (!subject.requested_memory) return std::nullopt;
    const auto found = subject.requested_memory->find(file);
    if (found == subject.requested_memory->end()) return std::nullopt;
    const std::string_view value = (*found).second;
    return value == "max" || ParseUint(value) ? std::optional(value) : std::nullopt;
  }
  void PlanFiles(const ClassSubject& subject, HostKeeper& host, ClassPart& part, ClassPlan& plan) {
    HostFiles& files = host.files();
    if (AwaitsCgroup(subject, subject.cgroup)) {
      part.way = kAtCreation;
      return;
    }
    if (subject.cgroup.empty()) {
      part.possible = NotFound("the container has no cgroup");
      return;
    }
    bool there = true;
    for (const auto& [file, wanted] : subject.chosen.memory.files) {
      const std::string path = fmt::format("{}/{}", subject.cgroup, file);
      const StatusOr<std::string> now = files.Read(path);
      if (!now.ok()) {
        part.possible = now.status();
        return;
      }
      there = there && SameHostValue(path, *now, wanted);
    }
    part.way = WayOf(subject, there, ways_);
    for (const auto& [file, wanted] : subject.chosen.memory.files) {
      part.paths.push_back(fmt::format("{}/{}", subject.cgroup, file));
      // If the kubelet sets such files, and the request is not known, the kubelet's value is
      // unknown once the class's value has replaced it: then the file must not be restored to the
      // value of a new cgroup, as LimitOf would have it.
      plan.Add(!subject.requested_memory && *context_.kubelet_sets_memory
                   ? HostValue{.path = part.paths.back(), .text = wanted}
                   : host.LimitOf(part.paths.back(), wanted, RequestedOf(subject, file)));
    }
  }

  const ClassContext context_;
  // Used on the worker's thread only.
  KeptTexts ways_;
  KeptTexts begun_with_;  // the memory policies with which containers were created
};

}  // namespace

std::unique_ptr<ClassKind> MakeMemoryKind(const ClassContext& context) {
  return std::make_unique<MemoryKind>(context);
}

}  // namespace resmgr
