// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/auditor.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/resmgr/applied_resources.h"

namespace resmgr {
namespace {

// Limit of waiting audits. For each one, a client of the admin socket waits.
constexpr size_t kMostJobs = 8;
constexpr size_t kMostNamed = 5;  // problems of each kind
// Limit of container names; others are only counted.
constexpr size_t kMostListed = 100;

struct Subject {
  ContainerKey key{};
  std::string container;
  ContainerId id;
  std::string cgroup_parent;
  ResourceValues decided;
};

bool IsInForce(const ResourceManager& manager, ContainerKey key) {
  return manager.Settled(key) || manager.WrittenPastRuntime(key);
}

// nullptr if the manager has no such container, or has another container with this key.
const Container* Find(const ResourceManager& manager, const ContainerId& id, ContainerKey key) {
  const Container* const container = manager.snapshot().FindContainer(key);
  return container != nullptr && container->id == id ? container : nullptr;
}

// The decided values to compare. Without `with_numbers`, CPUs and memory nodes only: other stages
// may change shares, quota and period. If the cpuset was written past a runtime that refused it,
// the runtime has refused the numbers as well.
ResourceValues DecidedFor(const ResourceManager& manager, const Container& container,
                          bool with_numbers) {
  ResourceValues decided = container.placement.values();
  decided.cpus = container.placement.EnforcedCpus();
  // Stages and the runtime's own plugins have the last word about numbers.
  const auto set_later = [](auto& value, const auto& later) {
    if (value && later) value = later;
  };
  set_later(decided.cpu_shares, container.set_later.cpu_shares);
  set_later(decided.cpu_quota, container.set_later.cpu_quota);
  set_later(decided.cpu_period, container.set_later.cpu_period);
  if (!with_numbers || manager.WrittenPastRuntime(container.key)) {
    decided.cpu_shares.reset();
    decided.cpu_quota.reset();
    decided.cpu_period.reset();
  }
  return decided;
}

using Readings = std::map<ContainerKey, StatusOr<CgroupValues>>;

Readings ReadAll(const CgroupReader& cgroups, const std::vector<Subject>& subjects) {
  Readings readings;
  CpusetLimits limits = cgroups.Limits();
  for (const Subject& subject : subjects)
    readings.emplace(subject.key, cgroups.Read(subject.cgroup_parent, subject.id.value(), &limits));
  return readings;
}

// Whether the container's own cgroup has other CPUs or memory nodes than decided.
bool IsWrittenByAnother(const Drift& drift) {
  return drift.where == Drift::Where::kCgroup && drift.value.starts_with("cpuset.");
}

// Whether the cause is outside of the container, so that sending the decision again has no effect.
bool IsFromOutside(const Drift& drift) {
  return drift.where != Drift::Where::kCgroup && !CanBeMended(drift);
}

std::string DescribeAll(const std::vector<Drift>& drifts) {
  std::string text;
  for (const Drift& drift : drifts)
    text += (text.empty() ? "" : "; ") + Describe(drift);
  return text;
}

// The text by which drifts with a common cause are reported as one. One cause may leave a container
// fewer CPUs and give another container the CPUs of others; the latter is worse, so the texts
// differ.
std::string CauseOf(const Drift& drift) {
  return drift.why.empty() ? Describe(drift)
                           : fmt::format("{}{}", HasOthers(drift) ? "" : "fewer ", drift.why);
}

// The cause outside of a container; "" where there is none.
std::string CommonCause(const std::vector<Drift>& drifts) {
  for (const Drift& drift : drifts)
    if (drift.why.empty()) return "";
  return CauseOf(drifts.front());
}

// Containers of one sentence, which names only the first one.
struct Named {
  std::string first;
  std::string text;
  size_t count = 0;
  std::vector<std::string> objects{};  // at most kMostListed

  // "container ns/web/main", or for several "containers ns/web/main and 3 more".
  std::string Names() const {
    return count < 2 ? fmt::format("container {}", first)
                     : fmt::format("containers {} and {} more", first, count - 1);
  }
};

}  // namespace

struct Auditor::Audit {
  std::vector<Subject> subjects;
  size_t changing = 0;
  Readings readings;
  std::map<ContainerId, ResourceValues> reported;
  std::set<ContainerId> unwritten;  // containers whose cgroups have the decided CPUs and nodes
  std::string runtime_problem = "the runtime has not answered in time";
  int parts = 2;  // parts of the audit that have not ended
};

Auditor::Auditor(Options options)
    : options_(std::move(options)),
      log_(GetLogger("audit")),
      reading_(options_.loop, "audit", std::chrono::milliseconds(0)) {}

Auditor::~Auditor() = default;

void Auditor::Configure(const AuditConfig& config) {
  if (config == config_) return;
  config_ = config;
  timer_ = config.interval.count() == 0
               ? nullptr
               : options_.loop.Every(config.interval, [this] { RunByClock(); });
}

void Auditor::RunByClock() {
  // If an audit already waits or runs, no further one is needed.
  if (jobs_.empty()) Run(config_.repair, [](const StatusOr<AuditReport>&) {});
}

void Auditor::Run(bool repair, Done done) {
  if (jobs_.size() >= kMostJobs) {
    options_.loop.Post(
        [done = std::move(done)] { done(ResourceExhausted("{} audits wait", kMostJobs)); });
    return;
  }
  jobs_.push_back({repair, std::move(done)});
  if (jobs_.size() == 1) Post(&Auditor::Begin);
}

void Auditor::RunSoon() {
  if (config_.interval.count() == 0 || soon_timer_ != nullptr) return;
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(soon_ran_ + options_.soon_again -
                                                                 options_.loop.Now());
  const bool ran = soon_ran_ != EventLoop::Clock::time_point{};
  soon_timer_ = options_.loop.After(ran ? std::max(options_.soon, rest) : options_.soon, [this] {
    soon_timer_.reset();
    // An audit under way may have looked before the change, so another one follows it.
    if (!jobs_.empty()) return RunSoon();
    soon_ran_ = options_.loop.Now();
    Run(config_.repair, [](const StatusOr<AuditReport>&) {});
  });
}

void Auditor::Begin() {
  ResourceManager* const manager = options_.manager();
  if (manager == nullptr) {
    Answer(FailedPrecondition("the null policy is active: no container is placed"));
    return;
  }
  if (!manager->synchronizer().ready()) {
    Answer(Unavailable("what the runtime holds is not known yet"));
    return;
  }
  const auto audit = std::make_shared<Audit>();
  const bool numbers = options_.numbers_are_ours();
  manager->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    ResourceValues decided = DecidedFor(*manager, container, numbers);
    if (container.state != ContainerState::kRunning || decided.empty()) return;
    if (!IsInForce(*manager, container.key)) {
      ++audit->changing;
      return;
    }
    audit->subjects.push_back({container.key, FullName(pod, container.name), container.id,
                               pod.cgroup_parent, std::move(decided)});
  });
  audit_ = audit;
  deadline_ = options_.loop.After(options_.patience, [this] { End(); });
  ReadCgroups(audit);
  AskRuntime(audit);
}

void Auditor::ReadCgroups(const std::shared_ptr<Audit>& audit) {
  const Status begun =
      reading_.Run([this, weak = std::weak_ptr<Audit>(audit), cgroups = options_.cgroups,
                    subjects = audit->subjects]() -> EventLoop::Task {
        auto readings = std::make_shared<Readings>(ReadAll(cgroups, subjects));
        return [this, weak, readings] {
          const std::shared_ptr<Audit> waiting = weak.lock();
          if (waiting == nullptr) return;
          waiting->readings = std::move(*readings);
          EndPart(*waiting);
        };
      });
  if (!begun.ok()) EndPart(*audit);
}

void Auditor::AskRuntime(const std::shared_ptr<Audit>& audit) {
  options_.manager()->AskRuntime(
      [this, weak = std::weak_ptr<Audit>(audit)](StatusOr<RuntimeInventory> inventory) {
        // If the audit is gone, `this` may be, too.
        const std::shared_ptr<Audit> waiting = weak.lock();
        if (waiting == nullptr) return;
        if (inventory.ok()) {
          waiting->runtime_problem =
              inventory->unclear.why.ok() ? "" : std::string(Message(inventory->unclear.why));
          for (const RuntimeContainer& container : inventory->containers) {
            if (inventory->unclear.containers.contains(container.id)) continue;
            waiting->reported.emplace(container.id, ReportedResources(container.resources));
          }
        } else {
          waiting->runtime_problem = Message(inventory.status());
        }
        EndPart(*waiting);
      });
}

void Auditor::EndPart(Audit& audit) {
  if (--audit.parts == 0 && audit_.get() == &audit) End();
}

void Auditor::End() {
  const std::shared_ptr<Audit> audit = std::exchange(audit_, nullptr);
  deadline_.reset();
  if (options_.manager() == nullptr) {
    Answer(FailedPrecondition("the null policy became active meanwhile"));
    return;
  }
  AuditReport report = Compare(*audit);
  if (jobs_.front().repair) Repair(report);
  LogNews(report);
  NoteWritten(*audit, report);
  Answer(std::move(report));
}

AuditReport Auditor::Compare(Audit& audit) const {
  const ResourceManager& manager = *options_.manager();
  const bool numbers = options_.numbers_are_ours();
  AuditReport report{.changing = audit.changing, .runtime_problem = audit.runtime_problem};
  for (const Subject& subject : audit.subjects) {
    const Container* const now = Find(manager, subject.id, subject.key);
    if (now == nullptr || now->state != ContainerState::kRunning) continue;
    // The decision has changed since the audit began.
    if (!IsInForce(manager, subject.key) || DecidedFor(manager, *now, numbers) != subject.decided) {
      ++report.changing;
      continue;
    }
    AuditReport::Finding finding{
        .key = subject.key, .container = subject.container, .id = subject.id};
    if (const auto reading = audit.readings.find(subject.key); reading == audit.readings.end()) {
      finding.unread = "the cgroups could not be read in time";
    } else if (!reading->second.ok()) {
      finding.unread = Message(reading->second.status());
    } else {
      finding.drifts = CompareCgroup(subject.decided, *reading->second);
      if (std::ranges::none_of(finding.drifts, IsWrittenByAnother))
        audit.unwritten.insert(subject.id);
    }
    // A runtime that was bypassed (RefusedUpdates::kWrite) still reports the former values.
    const auto reported = audit.reported.find(subject.id);
    if (reported != audit.reported.end() && !manager.WrittenPastRuntime(subject.key)) {
      std::ranges::move(CompareReport(subject.decided, reported->second),
                        std::back_inserter(finding.drifts));
    }
    ++(finding.unread.empty() ? report.checked : report.unread);
    if (!finding.drifts.empty()) ++report.drifted;
    finding.decided = subject.decided;
    if (!finding.drifts.empty() || !finding.unread.empty())
      report.findings.push_back(std::move(finding));
  }
  return report;
}

void Auditor::Repair(AuditReport& report) const {
  for (AuditReport::Finding& finding : report.findings) {
    if (std::ranges::none_of(finding.drifts, CanBeMended)) continue;
    finding.sent_again = true;
    options_.manager()->SendAgain(finding.key);
  }
}

// Logs a drift that stays only once, unless the decision is sent again. A cause that many
// containers share is one line.
void Auditor::LogNews(const AuditReport& report) {
  std::map<ContainerId, Known> found;
  std::map<std::string, Named> causes;
  for (const AuditReport::Finding& finding : report.findings) {
    if (finding.drifts.empty()) continue;
    const auto known = known_.find(finding.id);
    const bool news = known == known_.end() || known->second.drifts != finding.drifts;
    found.emplace(finding.id, Known{.key = finding.key,
                                    .drifts = finding.drifts,
                                    .decided = finding.decided,
                                    .repaired = finding.sent_again && known == known_.end()});
    if (!news && !finding.sent_again) continue;
    std::string text = DescribeAll(finding.drifts);
    const std::string cause = CommonCause(finding.drifts);
    if (cause.empty()) {
      log_.Warn("container {} has drifted: {}{}", finding.container, text,
                finding.sent_again ? "; what was decided is sent again" : "");
    } else {
      ++causes.try_emplace(cause, Named{.first = finding.container, .text = std::move(text)})
            .first->second.count;
    }
  }
  for (const auto& [cause, named] : causes)
    log_.Warn("{} {} drifted: {}", named.Names(), named.count < 2 ? "has" : "have", named.text);
  known_ = std::move(found);
  known_since_ = options_.loop.Now();
}

bool Auditor::IsLongAgo(EventLoop::Clock::time_point time) const {
  // A program that writes about as often as audits run must not appear and disappear in the report.
  constexpr int kIntervals = 5;
  return options_.loop.Now() - time > std::max(options_.left_alone, kIntervals * config_.interval);
}

// Counts writes by another program. An audit that finds a write again does not count it, unless the
// decided values were sent again in between: containers with a change under way are not compared,
// so these values had been in force.
void Auditor::NoteWritten(const Audit& audit, const AuditReport& report) {
  std::erase_if(written_, [&](const auto& known) {
    return Find(*options_.manager(), known.first, known.second.key) == nullptr ||
           IsLongAgo(known.second.found);
  });
  for (auto& [id, known] : written_)
    if (audit.unwritten.contains(id)) known.written = false;
  for (const AuditReport::Finding& finding : report.findings) {
    const auto drift = std::ranges::find_if(finding.drifts, IsWrittenByAnother);
    if (drift == finding.drifts.end()) continue;
    Written& written = written_[finding.id];
    written.key = finding.key;
    written.container = finding.container;
    written.last = *drift;
    if (!written.written || written.sent_again) ++written.writes;
    written.written = true;
    written.sent_again = finding.sent_again;
    written.found = options_.loop.Now();
  }
}

std::vector<Problem> Auditor::problems() const {
  std::vector<Problem> problems;
  if (options_.manager() == nullptr) return problems;
  AddWritten(problems);
  AddOutsideCauses(problems);
  return problems;
}

// Whether another program keeps writing the container's cpuset, which problems() reports.
bool Auditor::IsWrittenAgain(const ContainerId& id) const {
  const auto written = written_.find(id);
  return written != written_.end() && written->second.written && written->second.writes >= 2 &&
         !IsLongAgo(written->second.found);
}

void Auditor::AddWritten(std::vector<Problem>& problems) const {
  size_t count = 0;
  for (const auto& [id, written] : written_) {
    if (!IsWrittenAgain(id)) continue;
    if (Find(*options_.manager(), id, written.key) == nullptr) continue;
    if (++count > kMostNamed) continue;
    problems.push_back(
        {.kind = "cpuset-overridden",
         .message = fmt::format(
             "another program writes the cpuset of {}, past the runtime: {} (found {} times)",
             written.container, Describe(written.last), written.writes),
         .objects = {written.container},
         .next = "stop it from that (koordlet: the feature gate CPUSetAllocator), then run "
                 "`cri-resmgr-ctl audit -repair`"});
  }
  if (count > kMostNamed) {
    problems.push_back({.kind = "cpuset-overridden",
                        .message = fmt::format("and that of {} more containers is written so",
                                               count - kMostNamed)});
  }
}

const Container* Auditor::StillFound(const ContainerId& id, const Known& known) const {
  const ResourceManager& manager = *options_.manager();
  const Container* const container = Find(manager, id, known.key);
  if (container == nullptr || container->state != ContainerState::kRunning) return nullptr;
  if (IsLongAgo(known_since_)) return nullptr;
  const bool same = DecidedFor(manager, *container, options_.numbers_are_ours()) == known.decided;
  return same ? container : nullptr;
}

void Auditor::AddOutsideCauses(std::vector<Problem>& problems) const {
  std::map<std::string, Named> causes;
  for (const auto& [id, known] : known_) {
    const auto drift = std::ranges::find_if(known.drifts, IsFromOutside);
    if (drift == known.drifts.end()) continue;
    const Container* const container = StillFound(id, known);
    if (container == nullptr) continue;
    const Pod* const pod = options_.manager()->snapshot().FindPod(container->pod_id);
    if (pod == nullptr) continue;
    Named& named = causes[CauseOf(*drift)];
    const std::string name = FullName(*pod, container->name);
    if (++named.count == 1) named = {.first = name, .text = Describe(*drift), .count = 1};
    if (named.objects.size() < kMostListed) named.objects.push_back(name);
  }
  size_t count = 0;
  for (const auto& [cause, named] : causes) {
    if (++count > kMostNamed) break;
    problems.push_back({.kind = "drift",
                        .message = fmt::format("what was decided for {} is not in force: {}",
                                               named.Names(), named.text),
                        .objects = named.objects});
  }
  if (causes.size() > kMostNamed) {
    problems.push_back(
        {.kind = "drift",
         .message = fmt::format("and others for {} more causes", causes.size() - kMostNamed),
         .next = "cri-resmgr-ctl audit"});
  }
}

std::vector<Problem> Auditor::drifted() const {
  std::vector<Problem> problems;
  if (options_.manager() == nullptr) return problems;
  size_t count = 0;
  for (const auto& [id, known] : known_) {
    if (known.repaired || IsWrittenAgain(id)) continue;
    if (std::ranges::any_of(known.drifts, IsFromOutside)) continue;
    const Container* const container = StillFound(id, known);
    if (container == nullptr) continue;
    const Pod* const pod = options_.manager()->snapshot().FindPod(container->pod_id);
    if (pod == nullptr) continue;
    const std::string name = FullName(*pod, container->name);
    if (++count <= kMostNamed) {
      problems.push_back(
          {.kind = "drift",
           .message = fmt::format("{} has drifted: {}", name, DescribeAll(known.drifts)),
           .objects = {name},
           .next = "cri-resmgr-ctl audit -repair"});
      continue;
    }
    if (count == kMostNamed + 1)
      problems.push_back({.kind = "drift", .next = "cri-resmgr-ctl audit -repair"});
    if (problems.back().objects.size() < kMostListed) problems.back().objects.push_back(name);
    problems.back().message =
        fmt::format("and {} more have drifted",
                    CountText(static_cast<int64_t>(count - kMostNamed), "container"));
  }
  return problems;
}

std::string Auditor::FoundOf(const ContainerId& id) const {
  const auto known = known_.find(id);
  if (options_.manager() == nullptr || known == known_.end()) return "";
  return StillFound(id, known->second) == nullptr ? "" : DescribeAll(known->second.drifts);
}

void Auditor::Answer(StatusOr<AuditReport> result) {
  const Job job = std::move(jobs_.front());
  jobs_.pop_front();
  options_.told(result);
  job.done(std::move(result));
  if (!jobs_.empty()) Post(&Auditor::Begin);
}

void Auditor::Post(void (Auditor::*step)()) {
  options_.loop.Post(lifetime_.Guard([this, step] { (this->*step)(); }));
}

}  // namespace resmgr
