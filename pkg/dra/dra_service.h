// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/dra/cdi_files.h"
#include "pkg/dra/claim_object.h"
#include "pkg/dra/driver.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::dra {

// Prepares claims for the kubelet (DRAPlugin, v1 and v1beta1):
//
//   ask the agent for the object ─▶ ParseClaimObject ─▶ ClaimHolder::Reserve ─▶ CDI file ─▶ answer
//
// Each claim of a call has an entry in the answer, with its devices or its error, and claims do not
// wait for each other; calls about one claim are carried out one after the other. An Unprepare ends
// Prepares that still ask the agent, and does not wait for them. Both calls can be repeated at any
// time. Loop's thread only.
class DraService {
 public:
  // Returns the claim's object as JSON. Its errors reach the user unchanged. Not called back after
  // this service's end.
  using GetClaim =
      std::function<void(const ClaimName& claim, std::function<void(StatusOr<std::string>)> done)>;

  struct Options {
    EventLoop& loop;
    Driver driver{};
    ClaimHolder& holder;
    CdiFiles& files;
    // Whether claims get device metadata.
    bool metadata = false;
    GetClaim get{};
    // Called when a claim got CPUs or gave them back.
    std::function<void()> changed = [] {};
    // When a call is answered at the latest: the kubelet waits for 45 s. Work that takes longer
    // goes on, and the kubelet's next try gets the result.
    std::chrono::milliseconds deadline{40'000};
  };

  // Limit of claims in one call. A pod has a few.
  static constexpr size_t kMostClaims = 256;
  // Limits of calls about one claim that wait, and of claims with calls under way.
  static constexpr size_t kMostTurns = 8;
  static constexpr size_t kMostBusy = 1024;

  explicit DraService(Options options);

  // This object must outlive their server.
  UnaryServer::Methods Methods();

 private:
  // The result of a Prepare: one device in the answer for each part of the claim.
  struct Grant {
    AllocatedClaim allocated{};
    std::string cdi_device{};  // "": the claim has no part
  };

  using Prepared = std::function<void(const StatusOr<Grant>&)>;
  using Unprepared = std::function<void(const Status&)>;
  using End = std::function<void()>;
  // The state of a Prepare before it reserves anything.
  struct Question {
    bool withdrawn = false;
    Prepared done{};  // set while the agent is asked
  };
  // A call about a claim, which waits for earlier calls about the claim.
  struct Turn {
    std::function<void(const End& end)> run{};
    std::shared_ptr<Question> question{};  // of a Prepare
  };

  void PrepareAll(const std::string& message, const UnaryServer::Reply& reply);
  void UnprepareAll(const std::string& message, const UnaryServer::Reply& reply);
  // Runs `turn` when the earlier turns of this claim have called their `end`. kResourceExhausted:
  // too many wait, and `turn` never runs.
  Status TakeTurn(const std::string& uid, Turn turn);
  void RunTurn(const std::string& uid);
  // Ends the Prepares of this claim that have not reserved anything.
  void Withdraw(const std::string& uid);
  void Prepare(const ClaimName& claim, const std::shared_ptr<Question>& question,
               const Prepared& done);
  void Reserve(const AllocatedClaim& allocated, const Prepared& done);
  void WriteFile(const AllocatedClaim& allocated, const ClaimGrant& grant, bool was_held,
                 const Prepared& done);
  void Unprepare(const std::string& uid, const Unprepared& done);
  bool IsHeld(const std::string& uid) const;

  const Options options_;
  // The turns of each claim, the first of which is under way.
  std::map<std::string, std::deque<Turn>, std::less<>> turns_;
  RateLimit file_warnings_;
  Lifetime lifetime_;
};

// The outcome of a call of the kubelet.
struct AnsweredCall {
  bool prepare = false;  // else Unprepare
  size_t ok = 0;         // number of claims that succeeded
  size_t failed = 0;     // number of claims that failed; 1 if the whole call was refused
  std::chrono::nanoseconds took{};
};

// The methods of a DraService, which report each call to `tell` before they answer it. `loop` must
// outlive them; `tell` runs on its thread, and may be empty.
UnaryServer::Methods WithCounts(UnaryServer::Methods methods, const EventLoop& loop,
                                const std::function<void(const AnsweredCall&)>& tell);

}  // namespace resmgr::dra
