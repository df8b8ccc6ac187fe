// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/configurator.h"

#include "pkg/admin/policy_setup.h"
#include "pkg/config/print_config.h"

namespace resmgr {
namespace {

constexpr size_t kMaxJobs = 16;

// The part that decides about placements, as a text that can be compared.
std::string PolicyPart(const Config& config) {
  Config policy_only;
  policy_only.policy = config.policy;
  // Places nobody, and takes effect without asking the policy.
  policy_only.policy.start_failure = {};
  // Sections of policies that are not active change nothing.
  std::erase_if(policy_only.policy.sections,
                [&](const auto& section) { return section.first != config.policy.active; });
  return PrintConfig(policy_only);
}

}  // namespace

Status ApplyLogging(const LoggerConfig& config) {
  LogSettings settings;
  RESMGR_ASSIGN_OR_RETURN(settings.level, ParseLogLevel(config.level));
  if (!config.debug.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings.debug, SourceFilter::Parse(config.debug));
  }
  if (!config.source.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings.enabled, SourceFilter::Parse(config.source));
  }
  ConfigureLogging(std::move(settings));
  return OkStatus();
}

Configurator::Configurator(Options options, Config current, std::string source)
    : log_(GetLogger("config")),
      options_(std::move(options)),
      checks_(ChecksWith(options_.policies)),
      current_(std::move(current)),
      source_(std::move(source)) {}

Configurator::~Configurator() {
  if (storing_.joinable()) storing_.join();
}

void Configurator::Deliver(ConfigSource source, Done done) {
  if (options_.forced) {
    done(
        FailedPrecondition("the configuration of {} is forced (-force-config): what {} sends is "
                           "not taken",
                           source_, source.name));
    return;
  }
  StatusOr<Config> config = Read(source);
  if (!config.ok()) {
    log_.Warn("refused the configuration from {}: {}", source.name, Message(config.status()));
    done(config.status());
    return;
  }
  std::string name = source.name;
  Enqueue({.config = *std::move(config),
           .name = std::move(name),
           .keep = std::move(source),
           .done = std::move(done)});
}

void Configurator::Reload(Config config, std::string source, Done done) {
  Enqueue({.config = std::move(config),
           .name = std::move(source),
           .keep = std::nullopt,
           .done = std::move(done)});
}

StatusOr<Configurator::Preview> Configurator::Check(const ConfigSource& source) {
  RESMGR_ASSIGN_OR_RETURN(Config config, Read(source));
  Preview preview;
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<Policy> policy,
                          MakePolicy(config.policy, options_.machine, options_.policies));
  if (PolicyPart(config) != PolicyPart(current_)) {
    RESMGR_ASSIGN_OR_RETURN(preview.moves, options_.host.PreviewPolicy(policy.get()));
  }
  preview.config = std::move(config);
  return preview;
}

StatusOr<Config> Configurator::Read(const ConfigSource& source) const {
  RESMGR_ASSIGN_OR_RETURN(Config config, Parse(source, checks_));
  options_.overrides.ApplyTo(config);
  return config;
}

void Configurator::Enqueue(Job job) {
  if (jobs_.size() >= kMaxJobs) {
    job.done(ResourceExhausted("{} configurations wait to be applied", jobs_.size()));
    return;
  }
  jobs_.push_back(std::move(job));
  RunNext();
}

void Configurator::RunNext() {
  // Not recursive: `done` may deliver the next one.
  while (!busy_ && !jobs_.empty()) {
    busy_ = true;
    Apply();
  }
}

void Configurator::Apply() {
  const Config& next = jobs_.front().config;
  StatusOr<std::unique_ptr<Policy>> policy =
      MakePolicy(next.policy, options_.machine, options_.policies);
  if (!policy.ok()) {
    Finish(policy.status());
    return;
  }
  if (const Status dump = options_.dumper.Reconfigure(DumpOptions(next.dump)); !dump.ok()) {
    Finish(Annotate(dump, "dump"));
    return;
  }
  if (PolicyPart(next) == PolicyPart(current_)) {
    Finish(OkStatus());
    return;
  }
  options_.host.SetPolicy(*std::move(policy), [this](const Status& status) {
    if (!status.ok()) {
      const Status undone = options_.dumper.Reconfigure(DumpOptions(current_.dump));
      if (!undone.ok()) log_.Warn("dump: {}", Message(undone));
    }
    Finish(status);
  });
}

void Configurator::Finish(const Status& status) {
  if (status.ok()) {
    Commit();
  } else {
    log_.Warn("the configuration from {} stays in force: that from {} cannot be applied: {}",
              source_, jobs_.front().name, Describe(status));
  }
  const Done done = std::move(jobs_.front().done);
  jobs_.pop_front();
  busy_ = false;
  done(status);
  RunNext();
}

void Configurator::Commit() {
  Job& job = jobs_.front();
  current_ = std::move(job.config);
  source_ = job.name;
  options_.host.SetStartFailurePolicy(current_.policy.start_failure);
  if (const Status logging = ApplyLogging(current_.logger); !logging.ok()) {
    log_.Warn("logger: {}", Message(logging));
  }
  if (job.keep) Store(*std::move(job.keep));
  log_.Info("the configuration from {} is in force: policy {}", source_, current_.policy.active);
  options_.changed(*this);
}

// On a thread of its own: the disk may be slow. Configurations are rare.
void Configurator::Store(ConfigSource source) {
  if (storing_.joinable()) storing_.join();
  storing_ = std::thread([this, source = std::move(source)] {
    const Status stored = SaveConfigSource(options_.directory, source);
    if (!stored.ok()) {
      log_.Warn("the configuration will not be known after a restart: {}", Message(stored));
    }
  });
}

dump::Dumper::Options Configurator::DumpOptions(const DumpConfig& config) const {
  return {.specs = config.specs, .file = config.file, .show_secrets = options_.dump_secrets};
}

}  // namespace resmgr
