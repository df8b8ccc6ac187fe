// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/host_claims.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// Runs `done` with a result; if all copies are destroyed without one, runs it with an error in the
// next turn of the loop.
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

// Limit of claims named in problems.
constexpr size_t kNamedLost = 5;

dra::ClaimName NameOfHeld(const HeldClaim& held) {
  return {
      .uid = held.claim.uid, .namespace_name = held.claim.namespace_name, .name = held.claim.name};
}

// A container that carries the claim and has not ended; "" if there is none.
std::string RunningCarrier(const ResourceManager& manager, const std::string& uid) {
  for (const auto& [key, uids] : manager.carriers()) {
    if (std::ranges::find(uids, uid) == uids.end()) continue;
    const Container* const container = manager.snapshot().FindContainer(key);
    if (container == nullptr || container->state == ContainerState::kExited) continue;
    const Pod* const pod = manager.snapshot().FindPod(container->pod_id);
    return pod == nullptr ? container->name : FullName(*pod, container->name);
  }
  return "";
}

Problem LostProblem(const HeldClaim& held, const std::string& why,
                    std::chrono::system_clock::time_point since) {
  const std::string name = NameOfHeld(held).ToString();
  return {.kind = "plugin",
          .since = since,
          .message = fmt::format("claim {} (uid {}) holds CPUs {}, and no pod uses it: {}; the "
                                 "kubelet has not asked for its release",
                                 name, held.claim.uid, held.Cpus().ToString(), why),
          .objects = {name},
          .next = fmt::format("cri-resmgr-ctl release-claim {}", held.claim.uid)};
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
  // The state is written once the disk takes writes again; until then the kubelet repeats its call.
  if (!state_->Saved()) return done(Unavailable("the state cannot be written now: try again"));
  const auto written = lifetime_.Guard([done = std::move(done)] { done(OkStatus()); });
  state_->WhenWritten([loop = &loop_, written] { loop->Post(written); });
}

std::vector<ClaimGrant> HostClaims::Held() const {
  const ClaimHolder* const brain = brain_();
  return brain == nullptr ? std::vector<ClaimGrant>() : brain->Held();
}

LostClaims::LostClaims(Options options)
    : options_(std::move(options)),
      timer_(options_.loop.Every(options_.period, [this] { Look(); })) {}

void LostClaims::Look() {
  const ResourceManager* const manager = options_.manager();
  // Before the runtime's first list it is not known which containers carry claims.
  if (asking_ || manager == nullptr || !manager->synchronizer().ready()) return;
  ForgetOthers(*manager);
  const HeldClaim* const held = Next(*manager);
  if (held == nullptr) return;
  asking_ = true;
  last_ = held->claim.uid;
  options_.get(NameOfHeld(*held),
               lifetime_.Guard([this, uid = held->claim.uid](const StatusOr<std::string>& object) {
                 asking_ = false;
                 Answered(uid, object);
               }));
}

void LostClaims::Answered(const std::string& uid, const StatusOr<std::string>& object) {
  const ResourceManager* const manager = options_.manager();
  const HeldClaim* const held = manager == nullptr ? nullptr : manager->held_claims().Find(uid);
  if (held == nullptr) return;
  StatusOr<std::string> why = object;
  if (object.ok()) {
    why = dra::WhyUnused(*object, NameOfHeld(*held));
  } else if (object.status().code() == StatusCode::kNotFound) {
    why = "the API server has no such claim";
  }
  // An error of the agent or a refusal of the server shows nothing about the claim.
  if (!why.ok()) return;
  if (why->empty()) {
    findings_.erase(uid);
    return;
  }
  Finding& finding = findings_[uid];
  if (finding.looks == 0) finding.since = std::chrono::system_clock::now();
  finding.why = *std::move(why);
  ++finding.looks;
}

void LostClaims::ForgetOthers(const ResourceManager& manager) {
  std::erase_if(findings_, [&manager](const auto& finding) {
    const std::string& uid = finding.first;
    return manager.held_claims().Find(uid) == nullptr || !RunningCarrier(manager, uid).empty();
  });
}

const HeldClaim* LostClaims::Next(const ResourceManager& manager) const {
  const HeldClaim* first = nullptr;  // by uid
  const HeldClaim* next = nullptr;   // the first one after `last_`, by uid
  for (const HeldClaim& held : manager.held_claims().all()) {
    const std::string& uid = held.claim.uid;
    if (!RunningCarrier(manager, uid).empty()) continue;
    const auto finding = findings_.find(uid);
    const bool to_confirm = finding != findings_.end() && finding->second.looks < kLooks;
    // The claim asked for last is not asked for again at once, since asking may fail each time.
    if (to_confirm && uid != last_) return &held;
    if (first == nullptr || uid < first->claim.uid) first = &held;
    if (uid > last_ && (next == nullptr || uid < next->claim.uid)) next = &held;
  }
  return next != nullptr ? next : first;
}

std::vector<Problem> LostClaims::problems() const {
  std::vector<Problem> problems;
  const ResourceManager* const manager = options_.manager();
  if (manager == nullptr) return problems;
  size_t count = 0;
  for (const auto& [uid, finding] : findings_) {
    const HeldClaim* const held = manager->held_claims().Find(uid);
    if (finding.looks < kLooks || held == nullptr || !RunningCarrier(*manager, uid).empty())
      continue;
    if (++count <= kNamedLost) problems.push_back(LostProblem(*held, finding.why, finding.since));
  }
  if (count > kNamedLost) {
    problems.push_back(
        {.kind = "plugin",
         .message = fmt::format("and {} more claims like these", count - kNamedLost)});
  }
  return problems;
}

StatusOr<const HeldClaim*> LostClaims::Named(const ResourceManager& manager,
                                             const std::string& what) const {
  const HeldClaims& held = manager.held_claims();
  if (const HeldClaim* const found = held.Find(what)) return found;
  std::vector<const HeldClaim*> named;
  for (const HeldClaim& claim : held.all())
    if (NameOfHeld(claim).ToString() == what) named.push_back(&claim);
  if (named.empty())
    return NotFound("no claim {} holds CPUs here: give its uid or NAMESPACE/NAME", Printable(what));
  if (named.size() == 1) return named.front();
  std::vector<std::string> uids;
  uids.reserve(named.size());
  for (const HeldClaim* const claim : named)
    uids.push_back(claim->claim.uid);
  return InvalidArgument("{} claims are called {}; their uids are {}", named.size(),
                         Printable(what), fmt::join(uids, ", "));
}

void LostClaims::Release(const std::string& what, bool force,
                         std::function<void(StatusOr<ClaimGrant>)> done) {
  const ResourceManager* const manager = options_.manager();
  if (manager == nullptr)
    return done(FailedPrecondition("the policy null is active, under which no claim is known"));
  // The claim may have a container that the daemon has not seen yet, which would lose its CPUs.
  if (!manager->synchronizer().ready())
    return done(Unavailable("the runtime's containers are not known yet: try again"));
  const StatusOr<const HeldClaim*> held = Named(*manager, what);
  if (!held.ok()) return done(held.status());
  const std::string uid = (*held)->claim.uid;
  if (const std::string carrier = RunningCarrier(*manager, uid); !carrier.empty())
    return done(FailedPrecondition("{} is in use: {} runs on its CPUs", (*held)->Title(), carrier));
  const auto finding = findings_.find(uid);
  if (!force && (finding == findings_.end() || finding->second.looks < kLooks)) {
    return done(FailedPrecondition(
        "{} is not known to be unused: a pod may be about to start with it, which could then never "
        "start; -force releases it all the same",
        (*held)->Title()));
  }
  options_.holder.Release(uid, lifetime_.Guard([grant = (*held)->Grant(),
                                                done = std::move(done)](const Status& status) {
    status.ok() ? done(grant) : done(status);
  }));
}

}  // namespace resmgr
