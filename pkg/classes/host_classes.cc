// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_classes.h"

#include <set>
#include <utility>

#include "pkg/base/count_text.h"
#include "pkg/base/parse.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/sys/container_cgroup.h"

namespace resmgr {
namespace {

// For work that has begun, at the end of the daemon.
constexpr std::chrono::milliseconds kLastPatience{300};

// Problems that are listed one by one; a machine has hundreds of interrupts.
constexpr size_t kMostFiles = 10;

}  // namespace

HostClasses::HostClasses(Options options)
    : options_(std::move(options)),
      log_(GetLogger("classes")),
      unified_(IsUnifiedMount(options_.host_root + "/sys/fs/cgroup")),
      stage_(
          [this](const PodSandboxId& id) -> const Pod* {
            const ResourceManager* const manager = options_.manager();
            return manager == nullptr ? nullptr : manager->snapshot().FindPod(id);
          },
          [this](const Pod& pod, const CreateRequest& create) { return FilesOf(pod, create); }),
      worker_(std::make_shared<ClassWorker>(options_.host_root, options_.directory)),
      thread_(options_.loop, "classes", kLastPatience) {}

HostClasses::~HostClasses() {
  if (in_pipeline_) options_.pipeline.Remove(stage_);
}

void HostClasses::Configure(const ClassesConfig& config) {
  if (config != config_) wishes_.clear();
  config_ = config;
  const bool wanted = config_.chooses();
  if (wanted != in_pipeline_) {
    wanted ? options_.pipeline.Add(stage_) : options_.pipeline.Remove(stage_);
    in_pipeline_ = wanted;
  }
  if (config_.any()) on_ = wrote_ = true;
  if (on_) Begin(true);
}

StatusOr<ClassStage::Files> HostClasses::FilesOf(const Pod& pod,
                                                 const CreateRequest& create) const {
  RESMGR_RETURN_IF_ERROR(IsolationOf(pod, create.name, config_).status());
  RESMGR_ASSIGN_OR_RETURN(
      MemoryWish wish,
      MemoryOf(pod, create.name, create.resources.memory_limit.value_or(0), config_));
  // Runtimes refuse such files on cgroup v1.
  if (!unified_) wish.files.clear();
  return std::move(wish.files);
}

// At the end of the loop's turn: one decision often moves many containers, and an observer must not
// ask the resource manager.
void HostClasses::Schedule() {
  scheduled_ = true;
  options_.loop.Post(lifetime_.Guard([this] {
    scheduled_ = false;
    Begin(false);
  }));
}

void HostClasses::Later(std::chrono::milliseconds delay) {
  next_ = options_.loop.After(delay, [this] { Begin(true); });
}

const IsolationWish& HostClasses::WishOf(const Pod& pod, const Container& container) {
  const auto known = wishes_.find(container.key);
  if (known != wishes_.end()) return known->second;
  StatusOr<IsolationWish> wish = IsolationOf(pod, container.name, config_);
  if (!wish.ok()) {
    // Created before the annotation was looked at.
    wish = IsolationWish{.isolation = config_.isolation,
                         .source = config_.isolation_source,
                         .note = std::string(Message(wish.status()))};
  }
  return wishes_.emplace(container.key, *std::move(wish)).first->second;
}

std::vector<IsolationSubject> HostClasses::Subjects() {
  std::vector<IsolationSubject> subjects;
  const ResourceManager* const manager = options_.manager();
  notes_.clear();
  if (manager == nullptr || !config_.any()) {
    wishes_.clear();
    return subjects;
  }
  std::set<ContainerKey> keys;
  manager->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const Placement& placement = container.placement;
    if (placement.exclusive.empty() || container.state == ContainerState::kExited) return;
    keys.insert(container.key);
    const IsolationWish& wish = WishOf(pod, container);
    const std::string id(container.id.value());
    if (!wish.note.empty() && !id.empty()) notes_.emplace(id, wish.note);
    if (!wish.isolation.any()) return;
    subjects.push_back({.container = FullName(pod, container.name),
                        .id = id,
                        .pod_uid = std::string(pod.uid.value()),
                        .cgroup_parent = pod.cgroup_parent,
                        .cpus = placement.exclusive,
                        .shares = placement.cpus && *placement.cpus != placement.exclusive,
                        .quota_lifted = placement.cpu_quota == kNoQuota,
                        .wish = wish});
  });
  std::erase_if(wishes_, [&keys](const auto& wish) { return !keys.contains(wish.first); });
  return subjects;
}

std::vector<MemoryClassSubject> HostClasses::MemorySubjects() {
  std::vector<MemoryClassSubject> subjects;
  const ResourceManager* const manager = options_.manager();
  if (manager == nullptr || config_.memory_namespaces.empty()) return subjects;
  manager->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    if (container.state == ContainerState::kExited) return;
    const std::string id(container.id.value());
    const auto note = [&](const std::string& text) {
      if (!id.empty()) notes_[id] += notes_[id].empty() ? text : "; " + text;
    };
    StatusOr<MemoryWish> wish =
        MemoryOf(pod, container.name, container.requested.memory_limit.value_or(0), config_);
    if (!wish.ok()) return note(std::string(Message(wish.status())));
    if (!wish->note.empty()) note(wish->note);
    if (wish->files.empty()) return;
    subjects.push_back({.container = FullName(pod, container.name),
                        .id = id,
                        .cgroup_parent = pod.cgroup_parent,
                        .wish = *std::move(wish)});
  });
  return subjects;
}

// `again`: also if nothing was decided since the last work.
void HostClasses::Begin(bool again) {
  const ResourceManager* const manager = options_.manager();
  // Before the first list nothing is known of the containers that are there, and they keep what
  // they have.
  if (config_.any() && manager != nullptr && !manager->ready()) return Later(options_.retry);
  std::vector<IsolationSubject> subjects = Subjects();
  std::vector<MemoryClassSubject> memory = MemorySubjects();
  if (!again && begun_ > 0 && subjects == subjects_ && memory == memory_subjects_) return;
  subjects_ = std::move(subjects);
  memory_subjects_ = std::move(memory);
  next_.reset();
  Work();
}

void HostClasses::Work() {
  const uint64_t work = ++begun_;
  const Status begun =
      thread_.Run([this, worker = worker_, work, subjects = subjects_, memory = memory_subjects_,
                   config = config_]() -> EventLoop::Task {
        auto report = std::make_shared<ClassReport>(worker->Run(subjects, memory, config));
        return [this, work, report] { End(work, std::move(*report)); };
      });
  if (!begun.ok()) {
    ClassReport failed = report_;
    failed.journal = Message(begun);
    return End(work, std::move(failed));
  }
  if (deadline_ == nullptr) deadline_ = options_.loop.After(options_.patience, [this] { Hang(); });
}

void HostClasses::Hang() {
  // A disk that hangs is told by others where there are no classes.
  if (!config_.any() && report_.held.empty()) return;
  hangs_since_ = Clock::now();
  log_.Warn("reading or writing {} takes more than {} s: classes do not change meanwhile",
            Printable(worker_->in_hand()),
            std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count());
}

void HostClasses::End(uint64_t work, ClassReport report) {
  ended_ = work;
  deadline_.reset();
  if (std::exchange(hangs_since_, std::nullopt)) log_.Info("the host's files can be used again");
  // Later work waits.
  if (ended_ != begun_) deadline_ = options_.loop.After(options_.patience, [this] { Hang(); });
  for (const std::string& note : report.notes)
    log_.Info("{}", note);
  if (!report.damage.empty() && report_.damage.empty()) log_.Warn("{}", report.damage);
  report_ = std::move(report);
  const bool news = NoteInactive();
  const bool failing = !report_.journal.empty() || !report_.not_given_back.empty();
  if (!failing) {
    failing_since_.reset();
  } else if (!failing_since_) {
    failing_since_ = Clock::now();
    for (const Problem& problem : problems())
      if (problem.since == *failing_since_) log_.Warn("{}", problem.message);
  }
  on_ = config_.any() || failing || !report_.held.empty();
  // A class that is inactive for the first time may wait for something that comes yet, as the
  // cgroup of a new container.
  if (on_) Later(failing || news ? options_.retry : options_.period);
}

bool HostClasses::NoteInactive() {
  bool news = false;
  std::map<std::pair<std::string, std::string>, Inactive> now;
  for (const ClassState& one : report_.classes) {
    if (one.active) continue;
    const std::pair key(one.kind, one.name);
    const auto known = inactive_.find(key);
    const bool same = known != inactive_.end() && known->second.reason == one.reason;
    news = news || !same;
    if (!same) log_.Warn("{} {} is inactive: {}", one.kind, one.name, one.reason);
    now.emplace(key, same ? known->second : Inactive{one.reason, Clock::now()});
  }
  inactive_ = std::move(now);
  return news;
}

std::string HostClasses::NoteOf(const std::string& id) const {
  const auto note = notes_.find(id);
  return note == notes_.end() ? "" : note->second;
}

bool HostClasses::given_back() const {
  // The disk of the journal does not answer, and this process has changed nothing.
  if (!wrote_ && ended_ == 0) return true;
  // Without the journal it is not known what there is to give back.
  return !scheduled_ && ended_ == begun_ && report_.journal.empty() && report_.held.empty() &&
         report_.not_given_back.empty();
}

std::vector<Problem> HostClasses::problems() const {
  std::vector<Problem> problems;
  const auto add = [&problems](Clock::time_point since, std::string message,
                               std::vector<std::string> objects, std::string next) {
    problems.push_back({.kind = "class-inactive",
                        .since = since,
                        .message = std::move(message),
                        .objects = std::move(objects),
                        .next = std::move(next)});
  };
  for (const ClassState& one : report_.classes) {
    const auto inactive = inactive_.find({one.kind, one.name});
    if (one.active || inactive == inactive_.end()) continue;
    add(inactive->second.since,
        fmt::format("{} {} is inactive: {}", one.kind, one.name, one.reason), one.containers,
        "cri-resmgr-ctl classes");
  }
  if (hangs_since_) {
    add(*hangs_since_,
        fmt::format("reading or writing {} hangs: classes do not change", worker_->in_hand()),
        {worker_->in_hand()}, "restart the daemon once the file can be read");
  }
  if (!report_.damage.empty()) add({}, report_.damage, {options_.directory}, "");
  if (!failing_since_) return problems;
  if (!report_.journal.empty())
    add(*failing_since_, report_.journal, {options_.directory}, "see docs/classes.md");
  const char* const next = "write it yourself, or wait: it is tried again";
  size_t listed = 0;
  for (const auto& [path, why] : report_.not_given_back) {
    if (++listed > kMostFiles) break;
    add(*failing_since_, fmt::format("{} does not get its former value back: {}", path, why),
        {path}, next);
  }
  if (const size_t all = report_.not_given_back.size(); all > kMostFiles) {
    add(*failing_since_,
        fmt::format("{} more files do not get their former values back", all - kMostFiles),
        {options_.directory}, next);
  }
  return problems;
}

}  // namespace resmgr
