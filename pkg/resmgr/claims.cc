// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/claims.h"

#include <algorithm>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_place.h"
#include "pkg/state/saved_claim.h"

namespace resmgr {
namespace {

constexpr StateStore::PodNote kClaimNote = StateStore::PodNote::kClaim;

PodSandboxId ClaimNoteName(const std::string& uid) {
  return PodSandboxId(uid);
}

std::string TitleOfClaim(const Claim& claim) {
  return Printable(fmt::format("claim {}/{}", claim.namespace_name, claim.name));
}

// Whether each part of the claim has as many CPUs as it asks for, and where it asks for them. A
// policy may have given others in place of CPUs that went offline.
bool HasAll(const HeldClaim& held, const Machine& machine) {
  if (held.parts.size() != held.claim.parts.size()) return false;
  for (size_t i = 0; i < held.parts.size(); ++i) {
    const ClaimPart& wanted = held.claim.parts[i];
    const CpuSet& cpus = held.parts[i].placement.exclusive;
    if (cpus.size() != wanted.cpus) return false;
    if (!FitsPart(wanted, held.claim.options, cpus, machine)) return false;
  }
  return true;
}

std::string LostCpus(const HeldClaim& held) {
  const CpuSet cpus = held.Cpus();
  return fmt::format("{} has lost CPUs and holds {}", TitleOfClaim(held.claim),
                     cpus.empty() ? "none" : cpus.ToString());
}

}  // namespace

Claims::Claims(Brain& brain, const PolicyChanges& changes, EventLoop& loop, StateStore* state)
    : brain_(brain),
      changes_(changes),
      loop_(loop),
      state_(state),
      timeout_(brain.options.start_timeout) {
  TakeOverKept();
  saved_ = brain_.decider.claims();
}

// Called before any container is known, so the policy cannot refuse.
void Claims::TakeOverKept() {
  if (state_ == nullptr) return;
  std::vector<SavedClaim> kept;
  std::vector<std::string> unusable;
  state_->ForEachNote(kClaimNote, [&](std::string_view uid, std::string_view text) {
    StatusOr<SavedClaim> saved = DecodeClaim(uid, text);
    if (saved.ok()) {
      kept.push_back(*std::move(saved));
    } else {
      unusable.emplace_back(uid);
    }
  });
  for (const std::string& uid : unusable) {
    brain_.log.Error("claim {}: what was kept of it cannot be read, and its CPUs are not held",
                     Printable(uid));
    state_->EraseNote(kClaimNote, ClaimNoteName(uid));
  }
  if (kept.empty()) return;
  std::ranges::sort(kept, {}, [](const SavedClaim& saved) {
    return std::pair(saved.number, std::string_view(saved.claim.uid));
  });
  HeldClaims held;
  for (const SavedClaim& saved : kept) {
    HeldClaim& claim = held.Add(saved.claim);
    carriers_.Take(saved.claim.uid, saved.carriers);
    for (const Placement& place : saved.places) {
      Container& part = held.AddPart(claim, brain_.machine);
      part.placement = place;
      part.state = ContainerState::kRunning;
      part.cpus_bound = true;
      part.mems_bound = place.mems.has_value();
    }
    brain_.log.Info("{} holds CPUs {} since an earlier start", TitleOfClaim(saved.claim),
                    claim.Cpus().ToString());
  }
  const HeldClaims before = held;
  brain_.decider.HoldClaims(std::move(held));
  const StatusOr<ContainerKeys> known = brain_.decider.Reconcile();
  if (!known.ok()) brain_.log.Error("claims are not taken over: {}", Describe(known.status()));
  if (LogOtherCpus(before)) Save();
}

bool Claims::LogOtherCpus(const HeldClaims& before) {
  const std::shared_ptr<const HeldClaims> now = brain_.decider.claims();
  bool other = false;
  for (const HeldClaim& was : before.all()) {
    const HeldClaim* const held = now->Find(was.claim.uid);
    if (held == nullptr || held->Grant() == was.Grant()) continue;
    other = true;
    const std::string news =
        fmt::format("{} had CPUs {} and has CPUs {} now", TitleOfClaim(was.claim),
                    was.Cpus().ToString(), held->Cpus().ToString());
    const CpuSet lost = was.Cpus() - held->Cpus();
    if (lost.empty()) {
      brain_.log.Info("{}", news);
    } else if (lost.IsSubsetOf(brain_.decider.offline())) {
      brain_.log.Error("{}: CPUs {} are offline", news, lost.ToString());
    } else {
      brain_.log.Error("{}: policy {} does not leave them to it", news, brain_.policy().name());
    }
  }
  return other;
}

void Claims::Reserve(const Claim& claim, Reserved done) {
  if (brain_.synchronizer.ready()) return ReserveNow(claim, std::move(done));
  brain_.synchronizer.WhenReady(
      lifetime_.Guard([this, claim, done = std::move(done)](const Status& ready) {
        if (!ready.ok()) return done(ready);
        ReserveNow(claim, done);
      }));
}

Status Claims::CheckDisk() const {
  if (state_ == nullptr || state_->Saved()) return OkStatus();
  return Unavailable("the state cannot be written now: try again");
}

void Claims::ReserveNow(const Claim& claim, Reserved done) {
  if (Status disk = CheckDisk(); !disk.ok()) return done(std::move(disk));
  const std::shared_ptr<const HeldClaims> claims = brain_.decider.claims();
  if (const HeldClaim* const held = claims->Find(claim.uid))
    return ReserveHeld(*held, claim, std::move(done));
  if (changes_.UnderWay()) {
    return done(Unavailable("a change of the policy is under way: try again"));
  }
  if (brain_.LetsGo()) {
    return done(FailedPrecondition("no policy is active that gives exclusive CPUs"));
  }
  StatusOr<ContainerKeys> changed = brain_.decider.Reserve(claim);
  if (!changed.ok()) {
    brain_.log.Warn("{} is refused: {}", TitleOfClaim(claim), Describe(changed.status()));
    if (changed.status().code() == StatusCode::kInternal) brain_.Push(brain_.decider.Recover());
    return done(changed.status());
  }
  brain_.log.Info("{} holds CPUs {}; changed: {}", TitleOfClaim(claim),
                  brain_.decider.claims()->Find(claim.uid)->Cpus().ToString(),
                  CountText(std::ssize(*changed), "container"));
  brain_.ReportMoves(fmt::format("{} takes CPUs", TitleOfClaim(claim)));
  untold_.insert(claim.uid);
  Save();
  // The wait is added before the push, since an answer of the runtime may already end it.
  Add(claim.uid, std::move(done));
  brain_.Push(*std::move(changed));
}

void Claims::ReserveHeld(const HeldClaim& held, const Claim& claim, Reserved done) {
  if (!held.claim.AsksAs(claim)) {
    return done(FailedPrecondition("{} is held with another content: it has to be released first",
                                   TitleOfClaim(claim)));
  }
  if (!HasAll(held, brain_.machine)) {
    return done(FailedPrecondition("{}, which is not what it asks for: its pod has to end first",
                                   LostCpus(held)));
  }
  HeldClaims now = *brain_.decider.claims();
  if (now.Renew(claim)) {
    brain_.decider.HoldClaims(std::move(now));
    Save();
  }
  Add(claim.uid, std::move(done));
}

// Waits for the disk and for containers on the claim's CPUs. It may end within the call.
void Claims::Add(const std::string& uid, Reserved done) {
  const uint64_t number = ++last_wait_;
  Wait& wait = waits_[number];
  wait.uid = uid;
  wait.done.push_back(std::move(done));
  wait.timer = brain_.timers.After(timeout_, [this, number] { OnTimeout(number); });
  if (state_ == nullptr) return OnWritten(number);
  const auto written = lifetime_.Guard([this, number] { OnWritten(number); });
  state_->WhenWritten([this_loop = &loop_, written] { this_loop->Post(written); });
}

void Claims::OnWritten(uint64_t number) {
  const auto wait = waits_.find(number);
  if (wait == waits_.end()) return;
  wait->second.written = true;
  if (wait->second.uid.empty()) return Finish(number, ClaimGrant());
  Examine();
}

void Claims::Examine() {
  const bool carried =
      carriers_.Update(*brain_.decider.claims(), brain_.decider.carriers(), brain_.store);
  if (brain_.decider.claims() != saved_) {
    LogOtherCpus(*saved_);
    Save();
  } else if (carried) {
    Keep();
  }
  std::vector<uint64_t> numbers;
  for (const auto& [number, wait] : waits_)
    if (wait.written) numbers.push_back(number);
  for (const uint64_t number : numbers) {
    const auto wait = waits_.find(number);
    if (wait == waits_.end() || wait->second.uid.empty()) continue;
    const HeldClaim* const held = brain_.decider.claims()->Find(wait->second.uid);
    if (held == nullptr) {
      Finish(number, Unavailable("the claim was released meanwhile"));
    } else if (!HasAll(*held, brain_.machine)) {
      TakeBack(number, Unavailable("{}: try again", LostCpus(*held)));
    } else if (InTheWay(*held).empty()) {
      Finish(number, held->Grant());
    }
  }
}

// The callback may call this object again, so the wait is removed first.
void Claims::Finish(uint64_t number, const StatusOr<ClaimGrant>& result) {
  const Wait wait = std::move(waits_.extract(number).mapped());
  if (result.ok()) untold_.erase(wait.uid);
  for (const Reserved& done : wait.done)
    done(result);
}

void Claims::OnTimeout(uint64_t number) {
  const Wait& wait = waits_.at(number);
  if (!wait.written) {
    return TakeBack(number,
                    Unavailable("the state was not written within {} ms", timeout_.count()));
  }
  const HeldClaim* const held = brain_.decider.claims()->Find(wait.uid);
  if (held == nullptr) return TakeBack(number, Unavailable("the claim was released meanwhile"));
  TakeBack(number, Unavailable("after {} ms {} may still run on CPUs {}", timeout_.count(),
                               InTheWay(*held), held->Cpus().ToString()));
}

void Claims::OnDisconnected() {
  std::vector<uint64_t> lost;
  for (const auto& [number, wait] : waits_)
    if (!wait.uid.empty()) lost.push_back(number);
  for (const uint64_t number : lost) {
    if (waits_.contains(number))
      TakeBack(number, Unavailable("the connection to the runtime was lost"));
  }
}

// The wait is removed first, since GiveBack looks through all waits.
void Claims::TakeBack(uint64_t number, const Status& why) {
  const Wait wait = std::move(waits_.extract(number).mapped());
  // A claim is only given back if its reservation was never answered: one that was granted before
  // may be in use.
  if (untold_.contains(wait.uid)) {
    brain_.log.Warn("claim {} is taken back: {}", Printable(wait.uid), Describe(why));
    // GiveBack logs an error; the claim may then be held at the next try.
    (void)GiveBack(wait.uid);
  }
  for (const Reserved& done : wait.done)
    done(why);
}

Status Claims::GiveBack(const std::string& uid) {
  const std::shared_ptr<const HeldClaims> before = brain_.decider.claims();
  const HeldClaim* const held = before->Find(uid);
  if (held == nullptr) return OkStatus();
  StatusOr<ContainerKeys> changed = brain_.decider.GiveBack(uid);
  if (!changed.ok()) {
    brain_.log.Error("{} is not released: {}", TitleOfClaim(held->claim),
                     Describe(changed.status()));
    if (changed.status().code() == StatusCode::kInternal) brain_.Push(brain_.decider.Recover());
    return changed.status();
  }
  untold_.erase(uid);
  brain_.log.Info("{} gives back CPUs {}", TitleOfClaim(held->claim), held->Cpus().ToString());
  brain_.ReportMoves(fmt::format("{} was released", TitleOfClaim(held->claim)));
  Save();
  brain_.Push(*std::move(changed));
  return OkStatus();
}

void Claims::Release(const std::string& uid, std::function<void(Status)> done) {
  if (const Status given = GiveBack(uid); !given.ok()) return done(given);
  if (Status disk = CheckDisk(); !disk.ok()) return done(std::move(disk));
  // An unknown claim may have been given back a moment ago, so the reply waits for the disk.
  Add("",
      [done = std::move(done)](const StatusOr<ClaimGrant>& written) { done(written.status()); });
}

std::vector<ClaimGrant> Claims::Held() const {
  std::vector<ClaimGrant> grants;
  for (const HeldClaim& held : brain_.decider.claims()->all())
    grants.push_back(held.Grant());
  std::ranges::sort(grants, {}, &ClaimGrant::uid);
  return grants;
}

void Claims::FindCarriers(std::span<const ContainerKey> adopted,
                          std::span<const ContainerKey> without_notes) {
  const std::shared_ptr<const HeldClaims> held = brain_.decider.claims();
  if (held->empty() || adopted.empty()) return;
  ClaimCarriers found = carriers_.Find(*held, {.adopted = adopted,
                                               .without_notes = without_notes,
                                               .carriers = brain_.decider.carriers(),
                                               .store = brain_.store,
                                               .state_writer = brain_.state_writer});
  for (auto& [key, uids] : found)
    brain_.decider.SetClaims(key, std::move(uids));
}

std::string Claims::InTheWay(const HeldClaim& held) const {
  const CpuSet cpus = held.Cpus();
  const ClaimCarriers& carriers = brain_.decider.carriers();
  const auto carries = [&carriers, &held](ContainerKey key) {
    const auto carrier = carriers.find(key);
    return carrier != carriers.end() &&
           std::ranges::find(carrier->second, held.claim.uid) != carrier->second.end();
  };
  for (const auto& [key, record] : brain_.store.containers()) {
    if (!record->MayRun() || carries(key)) continue;
    if (!Handover::LeftoverOf(*record).Intersects(cpus) &&
        brain_.pusher.handover().ToLeave(*record, cpus).empty()) {
      continue;
    }
    return fmt::format("container {}", LogName(*record));
  }
  return "";
}

// Saves the claims that are held now, and informs observers.
void Claims::Save() {
  saved_ = brain_.decider.claims();
  brain_.observers.OnClaims(*saved_);
  carriers_.Retain(*saved_);
  Keep();
}

void Claims::Keep() {
  if (state_ == nullptr) return;
  state_->RetainNotes(kClaimNote,
                      [this](std::string_view uid) { return saved_->Find(std::string(uid)); });
  uint64_t number = 0;
  for (const HeldClaim& held : saved_->all()) {
    SavedClaim saved{.claim = held.claim,
                     .places = {},
                     .number = ++number,
                     .carriers = carriers_.Of(held.claim.uid)};
    for (const Container& part : held.parts)
      saved.places.push_back(part.placement);
    state_->PutNote(kClaimNote, ClaimNoteName(held.claim.uid), EncodeClaim(saved));
  }
  state_->Commit();
}

}  // namespace resmgr
