// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/dra_host.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/stat.h>

#include "pkg/claims/claimed_policy.h"
#include "pkg/log/log.h"
#include "pkg/node/dra_reports.h"
#include "pkg/schedview/placeable.h"

namespace resmgr {
namespace {

// Paths of the host, fixed by the kubelet and by CDI.
constexpr std::string_view kDrivers = "/var/lib/kubelet/plugins";
constexpr std::string_view kDriverRegistry = "/var/lib/kubelet/plugins_registry";
constexpr std::string_view kCdiDirectory = "/var/run/cdi";
// The metadata of devices, at the same place whatever the driver is called: beside the sockets of
// drivers, where the daemon may write on the host.
constexpr std::string_view kMetadataDirectory =
    "/var/lib/kubelet/plugins/cri-resmgr.intel.com/metadata";

std::string DriverSocket(std::string_view driver) {
  return fmt::format("{}/{}/dra.sock", kDrivers, driver);
}

std::string DriverRegistrySocket(std::string_view driver) {
  return fmt::format("{}/{}-reg.sock", kDriverRegistry, driver);
}

// The agent may be restarted meanwhile, and the next one is told again.
constexpr int kMostUntaken = 3;
constexpr StateStore::PodNote kDriverNote = StateStore::PodNote::kDriver;

bool IsGone(const std::string& file) {
  struct stat found {};
  return ::lstat(file.c_str(), &found) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace

struct DraHost::Served {
  Served(DraHost& host, const dra::Driver& driver)
      : withdraw(host.options_.withdraw),
        registry(host.OnHost(DriverRegistrySocket(driver.name))),
        endpoint(host.OnHost(DriverSocket(driver.name))),
        service({.loop = host.options_.loop,
                 .driver = driver,
                 .holder = host.held_,
                 .files = host.files_,
                 .metadata = host.config_.metadata,
                 .get = [&host](const dra::ClaimName& claim,
                                auto done) { host.claims_.Get(claim, std::move(done)); },
                 .changed = [&host] { host.watch_.Renew(); }}),
        registration({.driver = driver.name,
                      .endpoint = DriverSocket(driver.name),
                      .served = [this] { return socket.served(); },
                      .patience = host.options_.registration_patience}),
        socket(
            host.options_.loop, host.options_.flushes, endpoint,
            dra::WithCounts(service.Methods(), host.options_.loop, host.options_.count),
            [](const std::string& path) { return ListeningSocket::Create(path); },
            OptionalListener::FirstTry::kOffLoop, host.health_.Streams()),
        registry_socket(host.options_.loop, host.options_.flushes, registry, registration.Methods(),
                        dra::ListenForKubelet, OptionalListener::FirstTry::kOffLoop) {}
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    // Withdrawn before the socket's claim on the path ends, since another daemon may wait for the
    // claim.
    if (registry_socket.served()) withdraw(registry);
  }
  // The files of the sockets, in the order of removal.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    if (registry_socket.served()) files.push_back(registry);
    if (socket.served()) files.push_back(endpoint);
    return files;
  }

  const std::function<void(const std::string& path)> withdraw;
  const std::string registry;
  const std::string endpoint;
  dra::DraService service;
  dra::Registration registration;
  OptionalSocket socket;
  OptionalSocket registry_socket;
};

DraHost::DraHost(Options options)
    : options_(std::move(options)),
      all_known_(options_.state == nullptr || options_.state->size() > 0 ||
                 options_.state->HasNotes()),
      held_(options_.loop, options_.brain, options_.state),
      claims_(options_.loop, options_.flushes, options_.agent_socket),
      lost_({.loop = options_.loop,
             .manager = [this] { return options_.host.manager(); },
             .holder = held_,
             .get = [this](const dra::ClaimName& claim,
                           auto done) { claims_.Get(claim, std::move(done)); },
             .period = options_.compare}),
      files_({.loop = options_.loop,
              .directory = cdi_directory(),
              .metadata = OnHost(std::string(kMetadataDirectory)),
              .metadata_on_host = std::string(kMetadataDirectory)}),
      watch_({.loop = options_.loop,
              .machine = options_.machine,
              .tell = [this](const SchedulerView& view) { TakeView(view.absent()); },
              .repeats = true,
              .empty = true}),
      closing_(options_.loop, "dra-sockets", std::chrono::milliseconds(0)) {
  watch_.Follow(options_.host);
  if (options_.reports == nullptr) {
    why_untaken_ = FailedPrecondition("no agent is to be told: -agent-socket");
    return;
  }
  options_.reports->OnPool([this](const StatusOr<std::string>& pool) {
    why_untaken_ = pool.status();
    if (!pool.ok()) return;
    untaken_ = 0;
    pool_ = *pool;
    ShowHealth();
  });
}

DraHost::~DraHost() {
  if (options_.reports != nullptr) options_.reports->OnPool([](const StatusOr<std::string>&) {});
}

std::string DraHost::cdi_directory() const {
  return OnHost(std::string(kCdiDirectory));
}

std::string DraHost::OnHost(const std::string& path) const {
  return options_.host_root == "/" ? path : options_.host_root + path;
}

dra::Driver DraHost::NamesNow() const {
  return {.name = config_.DriverName(), .compatible = config_.compatible};
}

void DraHost::StopServing() {
  ending_ = true;
  beat_ = nullptr;
  served_.reset();
}

void DraHost::NoteConfiguration(const DraConfig& config) {
  if (ending_) return;
  const bool same = config == config_ && config.enable == (served_ != nullptr);
  config_ = config;
  if (same && FormerDrivers().empty()) {
    ReconcileFiles();
  } else {
    ServeAnew();
  }
  // Removes the devices from the agent's report, unless none were ever reported.
  if (!config_.enable && std::exchange(beats_, 0) > 0)
    options_.reports->ShowDevices(NoDeviceReport());
  ShowHealth();
  watch_.NoteConfiguration({.publish = config_.enable});
  untaken_ = 0;
  beat_ = config_.enable ? options_.loop.Every(options_.beat, [this] { Beat(); }) : nullptr;
  // Under the null policy the watch reports the missing view only once, so it is set here.
  if (options_.host.manager() == nullptr) TakeView(true);
}

// The drivers whose sockets a daemon that was killed may have left: neither a later daemon nor the
// kubelet, which would go on calling them, removes these.
std::vector<std::string> DraHost::FormerDrivers() const {
  std::vector<std::string> names;
  if (options_.state == nullptr) return names;
  options_.state->ForEachNote(kDriverNote, [&](std::string_view name, std::string_view) {
    const bool served = config_.enable && name == NamesNow().name;
    if (!served && name.find('/') == std::string_view::npos) names.emplace_back(name);
  });
  return names;
}

void DraHost::NoteDriver() {
  if (options_.state == nullptr) return;
  options_.state->PutNote(kDriverNote, PodSandboxId(NamesNow().name), "");
  options_.state->Commit();
}

// Replaces the served driver. The former one stays until the files of its sockets are removed,
// since their disk may hang.
void DraHost::ServeAnew() {
  if (leaving_) return;
  const std::vector<std::string> former = FormerDrivers();
  if (served_ == nullptr && former.empty()) return Serve();
  leaving_ = true;
  std::vector<std::string> files;
  if (served_ != nullptr) files = served_->Files();
  for (const std::string& name : former) {
    files.push_back(OnHost(DriverRegistrySocket(name)));
    files.push_back(OnHost(DriverSocket(name)));
  }
  const auto left = [this](const std::vector<std::string>& withdrawn) {
    leaving_ = false;
    if (ending_) return;
    for (const std::string& name : withdrawn)
      options_.state->EraseNote(kDriverNote, PodSandboxId(name));
    if (!withdrawn.empty()) options_.state->Commit();
    Serve();
  };
  const Status begun = closing_.Run(
      [files = std::move(files), withdraw = options_.withdraw, left, former]() -> EventLoop::Task {
        for (const std::string& file : files)
          withdraw(file);
        return [left, former] { left(former); };
      });
  if (!begun.ok()) left({});
}

void DraHost::Beat() {
  if (known_) ++untaken_;
  Report();
  LookForSockets();
}

// Serves anew if the file of a socket is gone: the kubelet finds the driver by its files alone, and
// a reset of the node removes them.
void DraHost::LookForSockets() {
  // Other work may not replace a removal that waits.
  if (served_ == nullptr || closing_.busy()) return;
  // Without a thread, the next beat looks.
  (void)closing_.Run([this, files = served_->Files()]() -> EventLoop::Task {
    const auto gone = std::ranges::find_if(files, IsGone);
    if (gone == files.end()) return {};
    return [this, file = *gone] {
      if (ending_) return;
      GetLogger("dra").Warn("{} was removed: the driver is served anew", file);
      ServeAnew();
    };
  });
}

void DraHost::Serve() {
  served_.reset();
  if (config_.enable) {
    NoteDriver();
    served_ = std::make_unique<Served>(*this, NamesNow());
  }
  ReconcileFiles();
}

// Does nothing without a brain: the held claims are unknown then.
void DraHost::ReconcileFiles() {
  if (served_ == nullptr || !held_.has_brain()) return;
  const auto others = all_known_ ? dra::CdiFiles::Others::kRemove : dra::CdiFiles::Others::kKeep;
  filed_ = held_.Held();
  const dra::ClaimForm form{.kind = std::string(NamesNow().Kind()), .metadata = config_.metadata};
  files_.Reconcile(form, FactsOf(*filed_), others, [this](const Status& status) {
    const bool told = std::exchange(filing_failed_, !status.ok());
    if (status.ok()) return;
    filed_.reset();
    if (!told) GetLogger("dra").Warn("files of claims, tried again: {}", Message(status));
  });
}

std::vector<dra::ClaimFacts> DraHost::FactsOf(const std::vector<ClaimGrant>& grants) const {
  const ResourceManager* const manager = options_.host.manager();
  std::vector<dra::ClaimFacts> facts;
  for (const ClaimGrant& grant : grants) {
    dra::ClaimFacts& one = facts.emplace_back(dra::ClaimFacts{.grant = grant});
    const HeldClaim* const held =
        manager == nullptr ? nullptr : manager->held_claims().Find(grant.uid);
    if (held == nullptr) continue;
    one.claim = held->claim;
    if (one.claim.driver.empty()) one.claim.driver = NamesNow().name;
  }
  return facts;
}

// Writes files again if a claim has other CPUs than its file, or if the disk refused a write or a
// removal.
void DraHost::FollowGrants() {
  if (held_.Held() != filed_ || files_.owes()) ReconcileFiles();
}

// In the loop's next turn, since the brain is in the midst of a decision.
void DraHost::ClaimsChanged::OnClaims(const HeldClaims& /*held*/) {
  soon_ = host_.options_.loop.After(std::chrono::milliseconds(0), [this] { host_.FollowGrants(); });
}

void DraHost::TakeView(bool absent) {
  const ResourceManager* const manager = options_.host.manager();
  if (absent || manager == nullptr) {
    devices_.clear();
    known_ = true;
    return Report();
  }
  if (served_ == nullptr) return watch_.Renew();
  // Where the policy grants nothing, the former step stays.
  const Policy& policy = manager->policy();
  step_ = CpuStep(policy, options_.machine).value_or(step_);
  const auto* const claimed = dynamic_cast<const ClaimedPolicy*>(&policy);
  const std::vector<ClaimPart> places = dra::DevicePlaces(options_.machine, config_.devices);
  const std::vector<int> grantable =
      claimed == nullptr
          ? std::vector<int>(places.size())
          : ClaimableCpus(*claimed, manager->snapshot(), places, options_.machine, {.step = step_});
  devices_ =
      dra::NodeDevices(NamesNow(), places, grantable, ClaimsOf(policy), options_.machine, step_);
  known_ = true;
  ShowHealth();
  Report();
}

// Called periodically, so that the agent knows that the driver still runs.
void DraHost::Report() {
  FollowGrants();
  // A driver that was turned off is no longer reported, even while its sockets are still served.
  if (!config_.enable || served_ == nullptr || !known_ || options_.reports == nullptr) return;
  options_.reports->ShowDevices(DeviceReport(NamesNow(), devices_, ++beats_));
  health_.Repeat();
}

void DraHost::NoteOffline(const CpuSet& offline) {
  if (offline_ == offline) return;
  offline_ = offline;
  ShowHealth();
}

void DraHost::ShowHealth() {
  static const HeldClaims kNone;
  const ResourceManager* const manager = options_.host.manager();
  health_.Show(pool_,
               dra::DeviceStates(NamesNow(), dra::DevicePlaces(options_.machine, config_.devices),
                                 manager == nullptr ? kNone : manager->held_claims(),
                                 options_.machine, offline_));
}

std::vector<Problem> DraHost::problems() const {
  std::vector<Problem> problems;
  if (ending_) return problems;
  problems = lost_.problems();
  if (served_ == nullptr) {
    if (const size_t held = held_.Held().size(); held > 0)
      problems.push_back(HeldWithoutDriver(held));
    return problems;
  }
  const ResourceManager* const manager = options_.host.manager();
  for (const std::optional<Problem>& problem :
       {manager == nullptr ? std::nullopt : HeldOfFormerDriver(manager->held_claims(), NamesNow()),
        served_->socket.problem(), served_->registry_socket.problem(),
        served_->registry_socket.served() ? served_->registration.problem() : std::nullopt,
        claims_.problem(), NoRoomForDevices(options_.machine, config_.devices)})
    if (problem) problems.push_back(*problem);
  if (untaken_ > kMostUntaken && !claims_.problem())
    problems.push_back(DevicesUntaken(why_untaken_));
  return problems;
}

}  // namespace resmgr
