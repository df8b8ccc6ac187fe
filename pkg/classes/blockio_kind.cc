// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/kept_texts.h"
#include "pkg/kube/annotations.h"

namespace resmgr {
namespace {

constexpr std::string_view kBlockio = "blockio";
constexpr const char* kWeightFile = "io.weight";
constexpr const char* kBfqFile = "io.bfq.weight";

bool IsWeightFile(std::string_view name) {
  return name == kWeightFile || name == kBfqFile || name.starts_with("blkio.bfq.weight");
}

// Whether the runtime can set the file at creation: it writes a text with one write, but the kernel
// takes one device with each write.
bool IsOneLine(const BlockioFile& file) {
  return !file.text.empty() && file.text.find('\n') == std::string::npos;
}

class BlockioKind final : public ClassKind {
 public:
  BlockioKind(ClassContext context, std::unique_ptr<BlockDevices> devices)
      : context_(std::move(context)), devices_(std::move(devices)) {}

  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    const bool by_runtime = config.blockio.assign == BlockioConfig::Assign::kRuntime;
    std::vector<KnownClass> known;
    for (const auto& [name, items] : config.blockio.classes)
      known.push_back({.name = name});
    ClassesConfig lenient;
    if (by_runtime) {
      // The class names are in the runtime's own configuration file, so the annotation may
      // have any name.
      const auto named = FindAnnotation(container.pod.annotations, "blockioclass", container.name);
      if (named) known.push_back({.name = Trim(named->value)});
      lenient = config;
      lenient.unknown = ClassesConfig::Unknown::kIgnore;
    }
    return AddClass(kBlockio, container.Ask(kBlockio), known, by_runtime ? lenient : config,
                    chosen);
  }
  void AtCreation(const ChosenClasses& chosen, const ClassesConfig& config, bool unified,
                  Adjustment& adjustment) const override {
    const ClassChoice* const choice = chosen.Find(kBlockio);
    if (choice == nullptr) return;
    if (config.blockio.assign == BlockioConfig::Assign::kRuntime) {
      adjustment.Wide().blockio_class = choice->name;
      return;
    }
    const bool docker = context_.ways().docker;
    for (const BlockioFile& file : context_.blockio->Find(choice->name)) {
      const bool can = docker ? file.name != kBfqFile : unified && IsOneLine(file);
      if (can) adjustment.Wide().unified.Set(file.name, file.text);
    }
  }
  bool HoldsStart(const ClassSubject& subject, const ClassesConfig& config) const override {
    return subject.chosen.Find(kBlockio) != nullptr &&
           config.blockio.assign == BlockioConfig::Assign::kAuto && context_.ways().holds_starts;
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override;

 private:
  void Publish(HostFiles& files) const;
  void PlanOne(const ClassWork& work, size_t index, const ClassChoice& choice, ClassPlan& plan);
  Status AddFiles(const std::vector<BlockioFile>& wanted, const std::string& cgroup,
                  HostKeeper& host, ClassPart& part, ClassPlan& plan) const;

  const ClassContext context_;
  // Used on the worker's thread only.
  const std::unique_ptr<BlockDevices> devices_;
  std::map<std::string, BlockioLimits, std::less<>> limits_;  // all classes, by name
  bool unified_ = false;
  KeptTexts ways_;
};

// NotFound: the host has no controller for block I/O.
Status CheckBlockio(bool unified, HostFiles& files) {
  if (unified) return CheckController(files, "io");
  const std::string path = fmt::format("{}/blkio", kCgroupRoot);
  if (!files.List(path).empty()) return OkStatus();
  return NotFound("there is no {}: the kernel has no controller for block I/O", path);
}

// Publishes the files that exist in a cgroup of runtimes: a runtime refuses a creation with a file
// that the cgroup lacks.
void BlockioKind::Publish(HostFiles& files) const {
  constexpr const char* kParents[] = {"kubepods.slice", "kubepods", "system.slice", "docker"};
  const auto has = [&](const std::string& name) {
    // On cgroup v1, only io.max: its limits have files there, and dockerd takes them as fields.
    if (!unified_) return name == "io.max";
    return std::ranges::any_of(kParents, [&](const char* parent) {
      return files.Read(fmt::format("{}/{}/{}", kCgroupRoot, parent, name)).ok();
    });
  };
  ResolvedBlockio::Classes classes;
  for (const auto& [name, limits] : limits_) {
    for (BlockioFile& file : UnifiedFiles(limits))
      if (has(file.name)) classes[name].push_back(std::move(file));
  }
  context_.blockio->Set(std::move(classes));
}

Status BlockioKind::AddFiles(const std::vector<BlockioFile>& wanted, const std::string& cgroup,
                             HostKeeper& host, ClassPart& part, ClassPlan& plan) const {
  Status missing;
  bool weights = false;
  bool any_weight = false;
  for (const BlockioFile& file : wanted) {
    const std::string path = fmt::format("{}/{}", cgroup, file.name);
    const Status there = host.files().Read(path).status();
    weights = weights || IsWeightFile(file.name);
    if (!there.ok()) {
      // A weight has two files, of which one is enough.
      if (missing.ok() || !IsWeightFile(file.name)) missing = there;
      if (!IsWeightFile(file.name)) return missing;
      continue;
    }
    any_weight = any_weight || IsWeightFile(file.name);
    part.paths.push_back(path);
    plan.Add(host.LimitOf(path, file.text));
  }
  return weights && !any_weight ? missing : OkStatus();
}

void BlockioKind::PlanOne(const ClassWork& work, size_t index, const ClassChoice& choice,
                          ClassPlan& plan) {
  const ClassSubject& subject = work.subjects[index];
  ClassPart part{.subject = index, .kind = kBlockio, .name = choice.name, .source = choice.source};
  const auto limits = limits_.find(choice.name);
  if (work.config.blockio.assign == BlockioConfig::Assign::kRuntime) {
    part.way = "by the runtime";
  } else if (limits == limits_.end()) {
    part.possible =
        NotFound("there are no block I/O parameters for class \"{}\"", Printable(choice.name, 64));
  } else {
    HostFiles& files = work.host.files();
    const std::string cgroup = unified_ ? subject.cgroup
                                        : FindSubjectCgroup(context_.host_root, "blkio",
                                                            subject.cgroup_parent, subject.id);
    const std::vector<BlockioFile> wanted =
        unified_ ? UnifiedFiles(limits->second) : LegacyFiles(limits->second);
    part.note = fmt::format("{}", fmt::join(limits->second.notes, "; "));
    const bool there = !wanted.empty() && std::ranges::all_of(wanted, [&](const BlockioFile& file) {
      const StatusOr<std::string> now = files.Read(fmt::format("{}/{}", cgroup, file.name));
      return now.ok() ? Trim(*now) == Trim(file.text) : IsWeightFile(file.name);
    });
    if (AwaitsCgroup(subject, cgroup)) {
      part.way = "before start";
    } else if (cgroup.empty()) {
      part.possible = NotFound("the container has no cgroup");
    } else {
      part.way = WayOf(subject, there, ways_);
      part.possible = AddFiles(wanted, cgroup, work.host, part, plan);
    }
  }
  plan.parts.push_back(std::move(part));
}

void BlockioKind::Plan(const ClassWork& work, ClassPlan& plan) {
  HostFiles& files = work.host.files();
  unified_ = HasCgroupV2(files);
  limits_.clear();
  for (const auto& [name, items] : work.config.blockio.classes)
    limits_.emplace(name, ResolveBlockio(items, *devices_, files));
  Publish(files);
  ways_.KeepOnly(work.subjects);
  if (!work.config.blockio.any()) return;
  const Status controller = limits_.empty() ? OkStatus() : CheckBlockio(unified_, files);
  for (const auto& [name, limits] : limits_) {
    plan.parts.push_back({.kind = kBlockio,
                          .name = name,
                          .possible = controller,
                          .note = fmt::format("{}", fmt::join(limits.notes, "; "))});
  }
  for (size_t i = 0; i < work.subjects.size(); ++i) {
    const ClassChoice* const choice = work.subjects[i].chosen.Find(kBlockio);
    if (choice != nullptr) PlanOne(work, i, *choice, plan);
  }
}

}  // namespace

std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context) {
  return MakeBlockioKind(context, std::make_unique<HostBlockDevices>(context.host_root));
}

std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context,
                                           std::unique_ptr<BlockDevices> devices) {
  return std::make_unique<BlockioKind>(context, std::move(devices));
}

}  // namespace resmgr
