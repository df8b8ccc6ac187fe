// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/host_claims.h"

#include <memory>
#include <utility>

namespace resmgr {
namespace {

// Runs `done` with a result, or with an error in the next turn of the loop once no copy is left
// that could give one.
template <typename Result>
class CertainAnswer {
 public:
  CertainAnswer(EventLoop& loop, std::function<void(Result)> done)
      : loop_(loop), done_(std::move(done)) {}
  CertainAnswer(const CertainAnswer&) = delete;
  CertainAnswer& operator=(const CertainAnswer&) = delete;
  ~CertainAnswer() {
    if (done_ == nullptr) return;
    loop_.Post([done = std::move(done_)] {
      done(Unavailable("the policy was switched off before it had decided"));
    });
  }

  void Give(Result result) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

 private:
  EventLoop& loop_;
  std::function<void(Result)> done_;
};

template <typename Result>
std::function<void(Result)> Certain(EventLoop& loop, std::function<void(Result)> done) {
  const auto answer = std::make_shared<CertainAnswer<Result>>(loop, std::move(done));
  return [answer](Result result) { answer->Give(std::move(result)); };
}

}  // namespace

void HostClaims::Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) {
  ClaimHolder* const brain = brain_();
  if (brain == nullptr)
    return done(FailedPrecondition("no policy is active that gives exclusive CPUs"));
  brain->Reserve(claim, Certain(loop_, std::move(done)));
}

void HostClaims::Release(const std::string& uid, std::function<void(Status)> done) {
  ClaimHolder* const brain = brain_();
  if (brain != nullptr) return brain->Release(uid, Certain(loop_, std::move(done)));
  if (state_ == nullptr) return done(OkStatus());
  state_->EraseNote(StateStore::PodNote::kClaim, PodSandboxId(uid));
  // It is written once the disk takes writes again; the kubelet asks until then.
  if (!state_->Saved()) return done(Unavailable("the state cannot be written now: try again"));
  const auto written = lifetime_.Guard([done = std::move(done)] { done(OkStatus()); });
  state_->WhenWritten([loop = &loop_, written] { loop->Post(written); });
}

std::vector<ClaimGrant> HostClaims::Held() const {
  const ClaimHolder* const brain = brain_();
  return brain == nullptr ? std::vector<ClaimGrant>() : brain->Held();
}

}  // namespace resmgr
