// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_classes.h"

#include <algorithm>

#include "pkg/base/parse.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/sys/cgroups.h"

namespace resmgr {
namespace {

// How long the daemon's end waits for work that has begun.
constexpr std::chrono::milliseconds kLastPatience{300};

// Limit of files listed one by one: a machine has hundreds of interrupts.
constexpr size_t kMostFiles = 10;
// Limit of audits that wait for the worker's thread, on behalf of clients of the admin socket.
constexpr size_t kMostComparisons = 64;
// Limit of starts and updates that wait for work. While a file hangs, each waits only for a time,
// but is forgotten only when the work ends: further ones do not wait.
constexpr size_t kMostHeld = 1024;

}  // namespace

HostClasses::HostClasses(Options options)
    : options_(std::move(options)),
      log_(GetLogger("classes")),
      unified_(IsUnifiedMount(options_.host_root + "/sys/fs/cgroup")),
      context_({.host_root = options_.host_root,
                .directory = options_.directory,
                .door = options_.door,
                .machine = options_.machine}),
      stage_(*this, options_.start_patience),
      worker_(std::make_shared<ClassWorker>(context_)),
      thread_(options_.loop, "classes", kLastPatience) {}

HostClasses::~HostClasses() {
  if (in_pipeline_) options_.pipeline.Remove(stage_);
}

void HostClasses::Configure(const ClassesConfig& config) {
  if (config != config_) {
    for (auto& [key, choice] : choices_)
      choice.seen = 0;  // to be chosen again
    first_ = 0;
  }
  config_ = config;
  const bool wanted = config_.any();
  if (wanted != in_pipeline_) {
    wanted ? options_.pipeline.Add(stage_) : options_.pipeline.Remove(stage_);
    in_pipeline_ = wanted;
  }
  if (config_.any()) on_ = wrote_ = true;
  if (on_) Begin(true);
}

void HostClasses::OnPlaced(const Act& act) {
  // If the call began before the stage was added, it does not pass the stage.
  if (!in_pipeline_) return Note();
  std::erase_if(creating_, [&act](const ContainerKey key) {
    const Container* const container = act.snapshot.FindContainer(key);
    return container == nullptr || container->state != ContainerState::kCreating;
  });
  creating_.push_back(act.container.key);
  Note();
}

const Pod* HostClasses::FindPod(const PodSandboxId& id) {
  const ResourceManager* const manager = options_.manager();
  return manager == nullptr ? nullptr : manager->snapshot().FindPod(id);
}

StatusOr<Adjustment> HostClasses::AtCreation(const Pod& pod, const CreateRequest& create,
                                             const RequestedFiles& files) {
  // The policy has placed the container already.
  const Container* placed = nullptr;
  ClassNames of_pool;
  if (const ResourceManager* const manager = options_.manager(); manager != nullptr) {
    for (const ContainerKey key : creating_) {
      const Container* const container = manager->snapshot().FindContainer(key);
      if (container == nullptr || container->state != ContainerState::kCreating ||
          container->pod_id != create.pod_id || container->name != create.name ||
          container->attempt != create.attempt)
        continue;
      placed = container;
    }
    if (placed != nullptr) of_pool = manager->policy().ClassesOf(placed->key);
  }
  const Placement none;
  const ClassedContainer container{.pod = pod,
                                   .name = create.name,
                                   .annotations = create.annotations,
                                   .memory_limit = create.resources.memory_limit.value_or(0),
                                   .placement = placed == nullptr ? none : placed->placement,
                                   .of_pool = of_pool};
  ChosenClasses chosen;
  for (const auto& kind : kinds_)
    RESMGR_RETURN_IF_ERROR(kind->Choose(container, config_, chosen));
  if (config_.absent != ClassesConfig::Absent::kWarn)
    RESMGR_RETURN_IF_ERROR(CheckPresent(known() ? &report_ : nullptr, chosen));
  Adjustment adjustment;
  for (const auto& kind : kinds_)
    kind->AtCreation(chosen, config_, unified_, adjustment);
  const bool reads_files = unified_ && (!config_.memory.empty() || !config_.memory_files.empty());
  if (reads_files) NoteRequested(files());
  // Keeps the choice, so that the next look at all containers need not choose again.
  if (placed != nullptr) {
    Choice& choice = choices_[placed->key];
    choice = InputsOf(container, context_.ways());
    if (reads_files) choice.requested_memory = files();
    choice.memory_policy = chosen.memory.policy ? PolicyText(*chosen.memory.policy) : "";
    choice.chosen = std::move(chosen);
    choice.seen = looks_;
  }
  return adjustment;
}

// Only a kubelet with the gate MemoryQoS puts these files into requests (pkg/kubelet/kuberuntime).
void HostClasses::NoteRequested(const StringMap& files) {
  const bool sets = files.contains("memory.high") || files.contains("memory.min");
  if (!sets || context_.kubelet_sets_memory->exchange(true)) return;
  log_.Info("the kubelet sets memory.high or memory.min itself: classes of memory win");
}

bool HostClasses::HoldStart(const ContainerId& id, std::function<void()> go) {
  // If the creation ended in this turn of the loop, the work for it has not begun yet.
  if (scheduled_) Begin(false);
  const auto subject = std::ranges::find(subjects_, id.value(), &ClassSubject::id);
  if (subject == subjects_.end() || ended_ == begun_) return false;
  const bool holds = std::ranges::any_of(kinds_, [&](const std::unique_ptr<ClassKind>& kind) {
    return kind->HoldsStart(*subject, config_);
  });
  return holds && Hold(std::move(go));
}

bool HostClasses::Hold(std::function<void()> go) {
  if (held_.size() >= kMostHeld) return false;
  held_.emplace_back(begun_, std::move(go));
  return true;
}

// The kernel refuses a quota below the burst, so an update that lowers the quota waits until the
// burst is lower. The burst grows after the quota has grown.
bool HostClasses::HoldUpdate(const StageCall& update, const ContainerId& id, int64_t quota,
                             std::function<void()> go) {
  const auto subject = std::ranges::find(subjects_, id.value(), &ClassSubject::id);
  if (subject == subjects_.end()) return false;
  const ClassChoice* const choice = subject->chosen.Find("scheduling");
  const SchedulingClassConfig* const found =
      choice == nullptr ? nullptr : config_.scheduling.Find(choice->name);
  if (found == nullptr || !found->burst_percent) return false;
  const bool lower = quota < subject->cpu_quota;
  coming_quotas_.insert_or_assign(&update, ComingQuota{subject->id, lower ? quota : 0});
  if (!lower) return false;
  Begin(false);
  return ended_ != begun_ && Hold(std::move(go));
}

void HostClasses::EndUpdate(const StageCall& update) {
  if (coming_quotas_.erase(&update) == 0) return;
  // The kernel has the new quota now, so the burst can follow.
  options_.loop.Post(lifetime_.Guard([this] { Begin(true); }));
}

int64_t HostClasses::ComingQuotaOf(std::string_view id) const {
  int64_t lowest = 0;
  for (const auto& [update, coming] : coming_quotas_) {
    if (coming.id != id || coming.quota == 0) continue;
    if (lowest == 0 || coming.quota < lowest) lowest = coming.quota;
  }
  return lowest;
}

void HostClasses::LetGo() {
  std::vector<std::function<void()>> ready;
  std::erase_if(held_, [&](auto& start) {
    if (start.first > ended_) return false;
    ready.push_back(std::move(start.second));
    return true;
  });
  for (const std::function<void()>& go : ready)
    go();
}

// Runs at the end of the loop's turn: one decision often moves many containers, and an observer
// must not call the resource manager.
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

bool HostClasses::Choice::IsFor(const ClassedContainer& container, const CreationWays& now) const {
  return memory_limit == container.memory_limit &&
         own_cpus == !container.placement.exclusive.empty() && pool == container.placement.pool &&
         ways == now && of_pool == container.of_pool;
}

HostClasses::Choice HostClasses::InputsOf(const ClassedContainer& container,
                                          const CreationWays& ways) {
  return {.of_pool = container.of_pool,
          .memory_limit = container.memory_limit,
          .own_cpus = !container.placement.exclusive.empty(),
          .pool = container.placement.pool,
          .ways = ways};
}

HostClasses::Choice& HostClasses::ChoiceOf(const Pod& pod, const Container& container,
                                           const ClassNames& of_pool, const CreationWays& ways) {
  const ClassedContainer asks = ClassedContainer::Of(pod, container, of_pool);
  Choice& choice = choices_[container.key];
  if (choice.seen != 0 && choice.IsFor(asks, ways)) return choice;
  std::optional<std::string> memory_policy = std::move(choice.memory_policy);
  std::optional<StringMap> requested_memory = std::move(choice.requested_memory);
  choice = InputsOf(asks, ways);
  choice.memory_policy = std::move(memory_policy);
  choice.requested_memory = std::move(requested_memory);
  for (const auto& kind : kinds_) {
    const Status status = kind->Choose(asks, config_, choice.chosen);
    // The container exists already, so the error cannot refuse it and is only noted.
    if (!status.ok()) choice.chosen.AddNote(Message(status));
  }
  return choice;
}

std::vector<ClassSubject> HostClasses::Subjects() {
  std::vector<ClassSubject> subjects;
  const ResourceManager* const manager = options_.manager();
  notes_.clear();
  if (manager == nullptr || !config_.any()) {
    choices_.clear();
    return subjects;
  }
  ++looks_;
  const CreationWays ways = context_.ways();
  manager->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const Placement& placement = container.placement;
    if (container.state == ContainerState::kExited) return;
    Choice& choice = ChoiceOf(pod, container, manager->policy().ClassesOf(container.key), ways);
    choice.seen = looks_;
    const ChosenClasses& chosen = choice.chosen;
    if (!chosen.note.empty() && !container.id.value().empty())
      notes_.emplace(container.id.value(), chosen.note);
    // Only the worker knows whether an earlier daemon gave the container a memory policy.
    const bool may_have_policy =
        choice.memory_policy ? !choice.memory_policy->empty() : ways.memory_policy;
    if (!chosen.any() && !may_have_policy) return;
    const std::string id(container.id.value());
    const LinuxResources& requested = container.requested;
    subjects.push_back(
        {.container = FullName(pod, container.name),
         .id = id,
         .pod_uid = std::string(pod.uid.value()),
         .cgroup_parent = pod.cgroup_parent,
         .qos = pod.qos,
         .running = container.state == ContainerState::kRunning,
         .cpus = placement.exclusive,
         .shares = placement.cpus && *placement.cpus != placement.exclusive,
         .quota_lifted = placement.cpu_quota == kNoQuota,
         .pool = placement.pool,
         .cpu_quota = placement.cpu_quota.value_or(requested.cpu_quota.value_or(0)),
         .cpu_period = placement.cpu_period.value_or(requested.cpu_period.value_or(0)),
         .coming_quota = ComingQuotaOf(id),
         .memory_limit = requested.memory_limit.value_or(0),
         .chosen = chosen,
         .memory_policy = choice.memory_policy,
         .requested_memory = choice.requested_memory});
  });
  std::erase_if(choices_, [this](const auto& choice) { return choice.second.seen != looks_; });
  return subjects;
}

std::vector<ClassPool> HostClasses::Pools() const {
  std::vector<ClassPool> pools;
  const ResourceManager* const manager = options_.manager();
  if (manager == nullptr || !config_.any()) return pools;
  for (Zone& zone : manager->policy().Zones(manager->snapshot())) {
    if (zone.classes.empty()) continue;
    // A zone without shared CPUs (idle ones, for instance) gives the class to all its CPUs that are
    // not exclusive. In other zones, CPUs that only containers use and reserved CPUs have the class
    // of their containers or none.
    zone.cpus = zone.shared.empty() ? zone.cpus - zone.exclusive : zone.cpus & zone.shared;
    pools.push_back({std::move(zone.name), std::move(zone.cpus), std::move(zone.classes)});
  }
  return pools;
}

// `again`: begins work even if nothing has changed since the last work.
void HostClasses::Begin(bool again) {
  const ResourceManager* const manager = options_.manager();
  // Until the runtime has listed its containers, they are unknown, so present values stay.
  if (config_.any() && manager != nullptr && !manager->synchronizer().ready())
    return Later(options_.retry);
  std::vector<ClassSubject> subjects = Subjects();
  std::vector<ClassPool> pools = Pools();
  if (!again && begun_ > 0 && subjects == subjects_ && pools == pools_) return;
  subjects_ = std::move(subjects);
  pools_ = std::move(pools);
  next_.reset();
  Work();
}

void HostClasses::Work() {
  const uint64_t work = ++begun_;
  if (first_ == 0) first_ = work;
  const Status begun = thread_.Run([this, worker = worker_, work, subjects = subjects_,
                                    pools = pools_, config = config_]() -> EventLoop::Task {
    auto report = std::make_shared<ClassReport>(worker->Run(subjects, pools, config));
    return [this, work, report] { End(work, std::move(*report)); };
  });
  if (!begun.ok()) {
    ClassReport failed = report_;
    failed.journal = Message(begun);
    first_ = 0;
    return End(work, std::move(failed));
  }
  if (deadline_ == nullptr) deadline_ = options_.loop.After(options_.patience, [this] { Hang(); });
}

void HostClasses::Compare(Differences done) {
  if (comparisons_.size() >= kMostComparisons)
    return done(ResourceExhausted("{} comparisons wait already", comparisons_.size()));
  const auto comparison = std::make_shared<Comparison>();
  comparison->done = std::move(done);
  comparison->timer = options_.loop.After(options_.patience, [this, comparison] {
    if (comparing_ == comparison) comparing_ = nullptr;
    std::erase(comparisons_, comparison);
    comparison->End(
        Unavailable("reading or writing {} takes too long", Printable(worker_->in_hand())));
    NextComparison();
  });
  comparisons_.push_back(comparison);
  NextComparison();
}

// The thread keeps only the latest waiting work, so a comparison would replace waiting work. It
// begins only if no work waits.
void HostClasses::NextComparison() {
  if (comparing_ != nullptr || comparisons_.empty() || ended_ != begun_) return;
  comparing_ = comparisons_.front();
  comparisons_.erase(comparisons_.begin());
  const Status begun =
      thread_.Run([this, comparison = comparing_, worker = worker_, subjects = subjects_,
                   pools = pools_, config = config_]() -> EventLoop::Task {
        auto found = std::make_shared<StatusOr<std::vector<HostDifference>>>(
            worker->Compare(subjects, pools, config));
        return [this, comparison, found] {
          if (comparing_ == comparison) comparing_ = nullptr;
          comparison->End(std::move(*found));
          NextComparison();
        };
      });
  if (!begun.ok()) std::exchange(comparing_, nullptr)->End(begun);
}

void HostClasses::Audit(bool repair, std::function<void(StatusOr<std::vector<Audited>>)> done) {
  if (!config_.any()) return done(std::vector<Audited>());
  Compare([this, repair,
           done = std::move(done)](StatusOr<std::vector<HostDifference>> before) mutable {
    if (!before.ok()) return done(before.status());
    std::vector<Audited> audited;
    for (HostDifference& difference : *before)
      audited.push_back({.difference = std::move(difference)});
    if (!repair || audited.empty()) return done(std::move(audited));
    Begin(true);
    Compare([audited = std::move(audited),
             done = std::move(done)](const StatusOr<std::vector<HostDifference>>& after) mutable {
      for (Audited& one : audited) {
        one.repaired = after.ok() && std::ranges::find(*after, one.difference.path,
                                                       &HostDifference::path) == after->end();
      }
      done(std::move(audited));
    });
  });
}

void HostClasses::Hang() {
  // Without classes, a hanging disk is reported by other parts.
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
  // If work waited, it begins now, and its deadline with it.
  if (ended_ != begun_) deadline_ = options_.loop.After(options_.patience, [this] { Hang(); });
  for (const std::string& note : report.notes)
    log_.Info("{}", note);
  if (!report.damage.empty() && report_.damage.empty()) log_.Warn("{}", report.damage);
  report_ = std::move(report);
  LetGo();
  NextComparison();
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
  // If a class has just become inactive, tries again soon: the cause may be a new container whose
  // cgroup does not exist yet.
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
    if (!same) log_.Warn("{} {} is inactive: {}", one.kind, one.name, one.Why());
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
  // No work has ended, since the journal's disk does not answer, and this process wrote nothing.
  if (!wrote_ && ended_ == 0) return true;
  // If the journal could not be read, the values to give back are unknown.
  return !scheduled_ && ended_ == begun_ && report_.journal.empty() &&
         report_.held.size() == report_.waiting.size() && report_.not_given_back.empty();
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
    add(inactive->second.since, fmt::format("{} {} is inactive: {}", one.kind, one.name, one.Why()),
        one.hit(), "cri-resmgr-ctl classes");
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
