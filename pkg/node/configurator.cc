// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/configurator.h"

#include <algorithm>
#include <iterator>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/config/config_node.h"
#include "pkg/resmgr/observers.h"

namespace resmgr {
namespace {

// Limit of queued jobs: each holds a received configuration.
constexpr size_t kMaxJobs = 8;
// How long the daemon's end waits for reading, whose time is bounded by the size, and for storing.
// A hanging disk is not waited for any longer.
constexpr std::chrono::seconds kStorePatience{1};
// A configuration that is not stored after this time counts as one that cannot be.
constexpr std::chrono::seconds kStoringTime{5};

constexpr std::string_view kLetGo = "cri-resmgr-ctl uninstall";

StatusOr<ConfigCandidate> LettingGo(Config config, const ConfigReader& reader) {
  config.policy = {};
  config.policy.active_origin = kLetGo;
  config.hooks.directory.clear();
  return reader.Prepare(std::move(config), std::string(kLetGo));
}

auto Reading(Configurator::Decode decode) {
  return [decode = std::move(decode)](const ConfigReader& reader) -> StatusOr<ConfigCandidate> {
    RESMGR_ASSIGN_OR_RETURN(DeliveredConfig source, decode());
    return reader.Read(std::move(source));
  };
}

Configurator::Checked Answering(Configurator::Done done) {
  return [done = std::move(done)](const StatusOr<Configurator::Preview>& result) {
    done(result.status());
  };
}

// Limit of named containers, since the text becomes an annotation of the node and a log line.
constexpr size_t kNamed = 5;
constexpr size_t kLongestPlace = 128;

}  // namespace

Configurator::Configurator(Options options, Config current, std::string source)
    : log_(GetLogger("config")),
      options_(std::move(options)),
      reader_(options_.reader),
      current_(std::make_shared<const Config>(std::move(current))),
      source_(std::move(source)),
      policy_part_(PolicyPart(*current_)),
      reading_(options_.loop, "config", kStorePatience),
      storing_(options_.loop, "config-store", kStorePatience) {}

Configurator::~Configurator() = default;

Status Configurator::CheckTaken(const std::string& sender) const {
  if (!options_.forced) return OkStatus();
  return FailedPrecondition(
      "the configuration of {} is forced (-force-config): what {} sends is not taken", source_,
      sender);
}

void Configurator::Deliver(std::string sender, Decode decode, Done done, Losses losses) {
  if (const Status forced = CheckTaken(sender); !forced.ok()) return done(forced);
  Enqueue({.sender = std::move(sender),
           .read = Reading(std::move(decode)),
           .answer = Answering(std::move(done)),
           .losses = losses});
}

void Configurator::Reload(const std::string& file, Load load, Done done) {
  Enqueue({.sender = file,
           .read = [file, load = std::move(load)](
                       const ConfigReader& reader) -> StatusOr<ConfigCandidate> {
             RESMGR_ASSIGN_OR_RETURN(Config config, load());
             return reader.Prepare(std::move(config), file);
           },
           .answer = Answering(std::move(done)),
           .replaces = source_});
}

void Configurator::Restore(DeliveredConfig kept) {
  std::string name = kept.name;
  Enqueue({.sender = std::move(name),
           .read = Reading([kept = std::move(kept)] { return kept; }),
           .answer = [](const StatusOr<Preview>&) {},
           .late = true});
}

void Configurator::Check(std::string sender, Decode decode, Checked checked) {
  if (const Status forced = CheckTaken(sender); !forced.ok()) return checked(forced);
  Enqueue({.sender = std::move(sender),
           .read = Reading(std::move(decode)),
           .answer = std::move(checked),
           .apply = false});
}

void Configurator::LetGo(Done done) {
  Enqueue({.sender = std::string(kLetGo),
           .read = {},
           .answer = Answering(std::move(done)),
           .lets_go = true});
}

void Configurator::SetOffline(const CpuSet& offline) {
  if (reader_->offline() != offline) reader_ = reader_->WithOffline(offline);
  if (machine_waits_ || offline_ == offline || jobs_.size() >= kMaxJobs) return;
  machine_waits_ = true;
  Enqueue({.sender = "the machine",
           .read = {},
           .answer =
               [this](const StatusOr<Preview>& result) {
                 machine_waits_ = false;
                 const bool again = std::exchange(machine_failed_, !result.ok());
                 if (result.ok() || again) return;
                 log_.Warn("CPUs that went offline, or came back, have no effect yet: {}",
                           OneLine(Describe(result.status())));
               },
           .machine = true});
}

void Configurator::Enqueue(Job job) {
  if (jobs_.size() >= kMaxJobs)
    return job.answer(ResourceExhausted("{} configurations wait to be applied", jobs_.size()));
  jobs_.push_back(std::move(job));
  RunNext();
}

void Configurator::RunNext() {
  // A job that ends at once is followed by the next one.
  while (!busy_ && !jobs_.empty()) {
    busy_ = true;
    StartReading();
  }
}

bool Configurator::IsOutOfDate() const {
  const Job& job = jobs_.front();
  if (job.late) return delivered_;
  if (!job.replaces || *job.replaces == source_) return false;
  log_.Info("the configuration from {} is in force, that from {} is not read", source_, job.sender);
  return true;
}

void Configurator::StartReading() {
  Job& job = jobs_.front();
  // Read only now: the job changes the configuration that is in force when the job begins.
  if (job.machine) {
    job.read = [current = *current_](const ConfigReader& reader) {
      return reader.MakePolicyAnew(current);
    };
  } else if (job.lets_go) {
    job.read = [current = current_](const ConfigReader& reader) {
      return LettingGo(*current, reader);
    };
  } else if (IsOutOfDate()) {
    return Finish(Preview());
  } else if (let_go_) {
    return Finish(FailedPrecondition(
        "containers were given back what their own requests ask for (cri-resmgr-ctl uninstall); "
        "a restart of cri-resmgr puts its configuration in force again"));
  }
  if (reading_.working())
    return Finish(Unavailable("an earlier configuration is still being read: a disk hangs"));
  const uint64_t number = ++reading_number_;
  reading_offline_ = reader_->offline();
  const Status begun = reading_.Run(
      [this, number, reader = reader_, read = std::move(job.read)]() -> EventLoop::Task {
        const auto candidate = std::make_shared<StatusOr<ConfigCandidate>>(read(*reader));
        return [this, number, candidate] {
          if (number == reading_number_) EndReading(std::move(*candidate));
        };
      });
  if (!begun.ok()) return Finish(begun);
  reading_timer_ = options_.clock.After(options_.reading_time, [this] {
    // It has been read, and the loop is about to take the result.
    if (!reading_.working()) return;
    ++reading_number_;
    EndReading(
        DeadlineExceeded("it could not be read within {} ms: it is too much, or a disk hangs",
                         options_.reading_time.count()));
  });
}

void Configurator::EndReading(StatusOr<ConfigCandidate> read) {
  reading_timer_.reset();
  const Job& job = jobs_.front();
  // A delivered configuration cannot set these values; they may have changed since the start.
  if (read.ok() && read->keep) read->config.nri = current_->nri;
  if (!read.ok()) {
    Finish(read.status());
  } else if (job.machine) {
    const Status applied = ApplyMachine(*std::move(read));
    Finish(applied.ok() ? StatusOr<Preview>(Preview()) : applied);
  } else if (job.apply) {
    Apply(std::make_shared<ConfigCandidate>(*std::move(read)));
  } else {
    Finish(Plan(*std::move(read)));
  }
}

StatusOr<Configurator::Preview> Configurator::Plan(ConfigCandidate candidate) {
  Preview preview;
  if (candidate.policy_part != policy_part_) {
    RESMGR_ASSIGN_OR_RETURN(preview.moves, options_.host.PreviewPolicy(candidate.policy.get()));
  }
  preview.warnings = std::move(candidate.warnings);
  preview.config = std::move(candidate.config);
  return preview;
}

void Configurator::Apply(const std::shared_ptr<ConfigCandidate>& candidate) {
  const auto end = [this, candidate](std::string losses, const Status& status) {
    if (!status.ok()) return Finish(status);
    let_go_ = jobs_.front().lets_go;
    Commit(std::move(*candidate), std::move(losses));
    Finish(Preview());
  };
  if (candidate->policy_part == policy_part_) return end(losses_, OkStatus());
  // If the policy refuses here, it would refuse again in a moment.
  const auto moves = options_.host.PreviewPolicy(candidate->policy.get());
  std::string losses = moves.ok() ? DescribeLosses(*moves) : "";
  if (!losses.empty()) {
    if (jobs_.front().losses == Losses::kRefuse)
      return Finish(FailedPrecondition(
          "containers would lose exclusive CPUs: {}; -force takes them", losses));
    log_.Warn("the configuration from {} takes exclusive CPUs away: {}", candidate->name, losses);
  }
  options_.host.SetPolicy(
      std::move(candidate->policy),
      [end, losses = std::move(losses)](const Status& status) { end(losses, status); });
}

// Sets the offline CPUs that the candidate was made for, in the brain and here, even if a
// configuration that came meanwhile was made for the same ones.
Status Configurator::ApplyMachine(ConfigCandidate candidate) {
  RESMGR_RETURN_IF_ERROR(options_.host.SetOffline(
      std::move(candidate.policy), {.cpus = reading_offline_, .reserved = candidate.reserved}));
  offline_ = reading_offline_;
  policy_part_ = std::move(candidate.policy_part);
  warnings_ = std::move(candidate.warnings);
  return OkStatus();
}

void Configurator::Finish(StatusOr<Preview> result) {
  const Job job = std::move(jobs_.front());
  if (job.apply && !job.machine && !result.ok()) {
    const std::string why = OneLine(Describe(result.status()));
    log_.Warn("the configuration from {} stays in force: that from {} is refused: {}", source_,
              job.sender, why);
    if (!let_go_) NoteRefusal(job.sender, why);
    options_.refused();
  }
  jobs_.pop_front();
  busy_ = false;
  job.answer(std::move(result));
  RunNext();
}

void Configurator::NoteRefusal(std::string sender, std::string why) {
  const auto since = refusal_ ? refusal_->since : std::chrono::system_clock::now();
  refusal_ = Refusal{.since = since, .sender = std::move(sender), .why = std::move(why)};
}

// Puts the configuration in force. From here on nothing can be refused any more.
void Configurator::Commit(ConfigCandidate candidate, std::string losses) {
  ++commits_;
  losses_ = std::move(losses);
  refusal_.reset();
  stored_ = OkStatus();
  current_ = std::make_shared<const Config>(std::move(candidate.config));
  source_ = std::move(candidate.name);
  if (jobs_.front().replaces) reader_ = reader_->WithHooks(current_->hooks);
  policy_part_ = std::move(candidate.policy_part);
  options_.host.SetStartFailurePolicy(current_->policy.start_failure);
  options_.host.SetRefusedUpdates(current_->policy.refused_updates);
  ConfigureLogging(std::move(candidate.logging));
  if (const Status dump = options_.dumper.Reconfigure(std::move(candidate.dump)); !dump.ok())
    log_.Warn("dump: {}", Message(dump));
  if (candidate.keep) {
    delivered_ = true;
    Store(*std::move(candidate.keep));
  } else {
    EndStoring(OkStatus());
  }
  log_.Info("the configuration from {} is in force: policy {}", source_, current_->policy.active);
  warnings_ = std::move(candidate.warnings);
  for (const std::string& warning : warnings_)
    log_.Warn("{}", warning);
  options_.changed(*this);
}

void Configurator::Store(DeliveredConfig source) {
  stores_ = true;
  const auto end = [this, commit = commits_](const Status& stored) {
    // If a newer configuration is in force, it reports its own storing.
    if (commit == commits_) EndStoring(stored);
  };
  storing_timer_ = options_.clock.After(kStoringTime, [end] {
    end(DeadlineExceeded("its disk does not answer within {} s", kStoringTime.count()));
  });
  const Status begun = storing_.Run([end, save = options_.save, directory = options_.directory,
                                     source = std::move(source)]() -> EventLoop::Task {
    return [end, stored = save(directory, source)] { end(stored); };
  });
  if (!begun.ok()) end(begun);
}

// May be called again for the same configuration, when a disk that hung has answered.
void Configurator::EndStoring(const Status& result) {
  const EventLoop::HandlePtr ended = std::exchange(storing_timer_, nullptr);
  stores_ = false;
  stored_ = result;
  if (!result.ok())
    log_.Warn("the configuration is not saved and will be lost at a restart: {}", Message(result));
  for (const Done& done : std::exchange(want_stored_, {}))
    done(result);
}

void Configurator::WhenStored(Done done) {
  if (!stores_) return done(stored_);
  want_stored_.push_back(std::move(done));
}

std::string DescribeLosses(const std::vector<ResourceManager::Move>& moves) {
  std::vector<std::string> losses;
  for (const ResourceManager::Move& move : LossesAmong(moves)) {
    losses.push_back(fmt::format("{} ({} -> {})", Printable(move.container),
                                 Printable(Describe(Place::Of(move.from)), kLongestPlace),
                                 Printable(Describe(Place::Of(move.to)), kLongestPlace)));
  }
  return FirstOf(losses, kNamed);
}

std::vector<ResourceManager::Move> LossesAmong(const std::vector<ResourceManager::Move>& moves) {
  std::vector<ResourceManager::Move> losses;
  std::copy_if(moves.begin(), moves.end(), std::back_inserter(losses),
               [](const ResourceManager::Move& move) { return move.LosesExclusiveCpus(); });
  return losses;
}

}  // namespace resmgr
