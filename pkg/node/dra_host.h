// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/config/module_configs.h"
#include "pkg/dra/cdi_files.h"
#include "pkg/dra/device_health.h"
#include "pkg/dra/dra_service.h"
#include "pkg/dra/driver.h"
#include "pkg/dra/registration.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/model/problem.h"
#include "pkg/node/agent_claims.h"
#include "pkg/node/agent_reports.h"
#include "pkg/node/host_claims.h"
#include "pkg/node/optional_services.h"
#include "pkg/node/policy_host.h"
#include "pkg/node/scheduler_watch.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The node's driver for Dynamic Resource Allocation, as long as the configuration turns it on: its
// sockets for the kubelet, CDI files for the runtime, and the report of its devices to the agent.
// If the driver fails, that is a listed problem, and containers without claims are not delayed.
// Loop's thread only.
class DraHost {
 public:
  struct Options {
    EventLoop& loop;
    h2::FlushQueue& flushes;
    const Machine& machine;
    PolicyHost& host;
    // The claims of the active brain; nullptr: there is none.
    HostClaims::Brain brain{};
    // Keeps the claims over restarts, and the driver's name, by which a daemon that serves another
    // one finds the sockets of one that was killed; must not have changed since it was loaded.
    // nullptr: they are not kept.
    StateStore* state = nullptr;
    AgentReports* reports = nullptr;  // nullptr: devices are not reported
    std::string agent_socket{};       // "": none
    // The directory below which this process sees the host's directories of the kubelet and of CDI;
    // paths for the kubelet are without it.
    std::string host_root = "/";
    // Counts each call of the kubelet. May be empty.
    std::function<void(const dra::AnsweredCall&)> count{};
    // How often devices are reported again while they are served, and the files of the sockets are
    // looked for.
    std::chrono::milliseconds beat{10'000};
    // dra::Registration::Options::patience.
    std::chrono::milliseconds registration_patience{60'000};
    // How often a claim that no container carries is compared with the API server.
    std::chrono::milliseconds compare{60'000};
    // Removes the file of a socket; called on any thread.
    std::function<void(const std::string& path)> withdraw = dra::WithdrawFromKubelet;
  };

  // All objects in the options must outlive this one.
  explicit DraHost(Options options);
  ~DraHost();
  DraHost(const DraHost&) = delete;
  DraHost& operator=(const DraHost&) = delete;

  // Both must observe the brain's acts.
  Observer& observer() { return watch_; }
  Observer& claims_observer() { return claims_changed_; }
  // Called when another configuration, or the first one, is in force.
  void NoteConfiguration(const DraConfig& config);
  // Called after each look at the machine's offline CPUs.
  void NoteOffline(const CpuSet& offline);
  // Called when the daemon ends: the next daemon serves the kubelet while this one ends the calls
  // in flight. This one serves nothing afterwards.
  void StopServing();
  std::vector<Problem> problems() const;
  // Held claims that are no longer in use; they are found whether the driver is on or off.
  LostClaims& lost_claims() { return lost_; }
  // Where the files of claims are, as this process sees it.
  std::string cdi_directory() const;

 private:
  struct Served;

  // The scheduler's view, which `watch_` waits for, may be made half a minute after a change on a
  // large machine. A container that is created before must find its claim's CPUs in the CDI file.
  class ClaimsChanged final : public Observer {
   public:
    explicit ClaimsChanged(DraHost& host) : host_(host) {}
    void OnClaims(const HeldClaims&) override;

   private:
    DraHost& host_;
    EventLoop::HandlePtr soon_;
  };

  std::string OnHost(const std::string& path) const;
  dra::Driver NamesNow() const;
  std::vector<std::string> FormerDrivers() const;
  void NoteDriver();
  void ServeAnew();
  void Beat();
  void LookForSockets();
  void Serve();
  void ReconcileFiles();
  void FollowGrants();
  std::vector<dra::ClaimFacts> FactsOf(const std::vector<ClaimGrant>& grants) const;
  void TakeView(bool absent);
  void Report();
  void ShowHealth();

  const Options options_;
  // Whether the saved state could be read. If not, unknown claims may be in use, so files of
  // unknown claims are kept. The file of a claim that ended is removed by the claim's release,
  // which the kubelet repeats.
  const bool all_known_;
  DraConfig config_;
  HostClaims held_;
  AgentClaims claims_;
  LostClaims lost_;
  // The claims with which the CDI files were last compared; nullopt if the comparison failed or
  // none was made yet.
  std::optional<std::vector<ClaimGrant>> filed_;
  bool filing_failed_ = false;  // the last comparison failed, which was logged
  // Outlives the driver's configurations, so that its work stays in order.
  dra::CdiFiles files_;
  SchedulerWatch watch_;
  ClaimsChanged claims_changed_{*this};
  dra::DeviceHealth health_;  // outlives the socket
  CpuSet offline_;
  std::string pool_;  // as the agent names it; "": not known yet
  std::vector<dra::NodeDevice> devices_;
  int step_ = 1;  // CPUs that claims get at a time
  bool ending_ = false;
  bool known_ = false;  // `devices_` describes the present state
  int untaken_ = 0;     // beats since an agent has taken the devices
  Status why_untaken_;
  uint64_t beats_ = 0;
  bool leaving_ = false;  // the served driver is being replaced
  EventLoop::HandlePtr beat_;
  std::unique_ptr<Served> served_;  // nullptr: the driver is off
  OffLoop closing_;
};

}  // namespace resmgr
