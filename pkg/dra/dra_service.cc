// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/dra_service.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pkg/api/dra.pb.h"
#include "pkg/base/parse.h"
#include "pkg/dra/claim_metadata.h"
#include "pkg/kube/names.h"
#include "pkg/log/log.h"

namespace resmgr::dra {
namespace {

namespace api = k8s::io::kubelet::pkg::apis::dra::v1;

constexpr std::string_view kPackages[] = {"k8s.io.kubelet.pkg.apis.dra.v1.",
                                          "k8s.io.kubelet.pkg.apis.dra.v1beta1."};
constexpr size_t kLongestError = 1024;  // bytes
constexpr std::chrono::seconds kFileWarningPeriod{60};

// The answer to one call: it is sent when it has an entry for each claim, or at the deadline.
template <typename Response>
struct ClaimAnswers {
  using Entry = typename std::decay_t<decltype(std::declval<Response>().claims())>::mapped_type;

  Response response{};
  std::set<std::string> missing{};
  UnaryServer::Reply reply{};
  EventLoop::HandlePtr deadline{};

  void Set(const std::string& uid, Entry entry) {
    if (missing.erase(uid) == 0) return;  // set already, or failed at the deadline
    (*response.mutable_claims())[uid] = std::move(entry);
    if (missing.empty()) Finish();
  }
  void Fail(const std::string& uid, const Status& why) {
    Entry entry;
    entry.set_error(Printable(Message(why), kLongestError));
    Set(uid, std::move(entry));
  }
  void FailRest(const Status& why) {
    for (const std::string& uid : std::set<std::string>(missing))
      Fail(uid, why);
  }
  void Finish() {
    deadline.reset();
    reply(response.SerializeAsString());
  }
};

// Calls `each` for each claim of the request; `each` has to set the claim's entry in the answers.
template <typename Request, typename Response>
void AnswerEach(EventLoop& loop, std::chrono::milliseconds deadline, const std::string& message,
                const UnaryServer::Reply& reply,
                const std::function<void(const api::Claim&,
                                         const std::shared_ptr<ClaimAnswers<Response>>&)>& each) {
  Request request;
  if (!request.ParseFromString(message))
    return reply(InvalidArgument("not a {}", request.GetTypeName()));
  if (static_cast<size_t>(request.claims_size()) > DraService::kMostClaims)
    return reply(InvalidArgument("{} claims in one call: {} are the limit", request.claims_size(),
                                 DraService::kMostClaims));
  const auto answers = std::make_shared<ClaimAnswers<Response>>();
  answers->reply = reply;
  for (const api::Claim& claim : request.claims())
    answers->missing.insert(claim.uid());
  if (answers->missing.empty()) return answers->Finish();
  answers->deadline = loop.After(deadline, [weak = std::weak_ptr(answers), deadline] {
    if (const auto late = weak.lock())
      late->FailRest(DeadlineExceeded("it is not done after {} ms, and goes on", deadline.count()));
  });
  // A claim that is named twice is carried out twice, which changes nothing.
  for (const api::Claim& claim : request.claims())
    each(claim, answers);
}

Status CheckName(const ClaimName& claim) {
  if (!IsClaimUid(claim.uid))
    return InvalidArgument("\"{}\" is not a UID", Printable(claim.uid, 64));
  if (!IsSubdomain(claim.namespace_name) || !IsSubdomain(claim.name))
    return InvalidArgument("\"{}\" is not the name of a claim", Printable(claim.ToString(), 128));
  return OkStatus();
}

Status WasWithdrawn() {
  return Unavailable("the claim was unprepared meanwhile");
}

constexpr std::string_view kPrepareMethod = "/NodePrepareResources";
constexpr std::string_view kUnprepareMethod = "/NodeUnprepareResources";

template <typename Response>
void CountClaims(const StatusOr<std::string>& reply, AnsweredCall& call) {
  Response response;
  if (!reply.ok() || !response.ParseFromString(*reply)) {
    call.failed = 1;
    return;
  }
  for (const auto& [uid, entry] : response.claims())
    ++(entry.error().empty() ? call.ok : call.failed);
}

}  // namespace

DraService::DraService(Options options)
    : options_(std::move(options)), file_warnings_(1, kFileWarningPeriod) {}

UnaryServer::Methods DraService::Methods() {
  UnaryServer::Methods methods;
  for (const std::string_view package : kPackages) {
    methods[fmt::format("/{}DRAPlugin/NodePrepareResources", package)] =
        [this](const std::string& message, const UnaryServer::Reply& reply) {
          PrepareAll(message, reply);
        };
    methods[fmt::format("/{}DRAPlugin/NodeUnprepareResources", package)] =
        [this](const std::string& message, const UnaryServer::Reply& reply) {
          UnprepareAll(message, reply);
        };
  }
  return methods;
}

void DraService::PrepareAll(const std::string& message, const UnaryServer::Reply& reply) {
  using Response = api::NodePrepareResourcesResponse;
  const auto each = [this](const api::Claim& claim,
                           const std::shared_ptr<ClaimAnswers<Response>>& answers) {
    const ClaimName name{
        .uid = claim.uid(), .namespace_name = claim.namespace_(), .name = claim.name()};
    const auto set = [this, uid = name.uid, answers](const StatusOr<Grant>& grant) {
      if (!grant.ok()) return answers->Fail(uid, grant.status());
      api::NodePrepareResourceResponse entry;
      for (size_t at = 0; at < grant->allocated.devices.size(); ++at) {
        const ClaimPart& part = grant->allocated.claim.parts[at];
        const ClaimDeviceRef& ref = grant->allocated.devices[at];
        api::Device& device = *entry.add_devices();
        device.add_request_names(part.request);
        device.set_pool_name(ref.pool);
        device.set_device_name(part.device);
        device.add_cdi_device_ids(grant->cdi_device);
        if (options_.metadata) {
          device.add_cdi_device_ids(MetadataDevice(options_.driver.name, uid, part.request));
        }
        if (!ref.share_id.empty()) device.set_share_id(ref.share_id);
      }
      answers->Set(uid, std::move(entry));
    };
    Status refused = CheckName(name);
    if (refused.ok()) {
      const auto question = std::make_shared<Question>();
      const auto run = [this, name, question, set](const End& end) {
        Prepare(name, question, [set, end](const StatusOr<Grant>& grant) {
          set(grant);
          end();
        });
      };
      refused = TakeTurn(name.uid, {.run = run, .question = question});
    }
    if (!refused.ok()) answers->Fail(name.uid, refused);
  };
  AnswerEach<api::NodePrepareResourcesRequest, Response>(options_.loop, options_.deadline, message,
                                                         reply, each);
}

void DraService::UnprepareAll(const std::string& message, const UnaryServer::Reply& reply) {
  using Response = api::NodeUnprepareResourcesResponse;
  const auto each = [this](const api::Claim& claim,
                           const std::shared_ptr<ClaimAnswers<Response>>& answers) {
    const std::string& uid = claim.uid();
    // No claim with such a UID was ever prepared, so there is nothing to undo.
    if (!IsClaimUid(uid)) return answers->Set(uid, {});
    Withdraw(uid);
    const auto run = [this, uid, answers](const End& end) {
      Unprepare(uid, [uid, answers, end](const Status& status) {
        status.ok() ? answers->Set(uid, {}) : answers->Fail(uid, status);
        end();
      });
    };
    const Status refused = TakeTurn(uid, {.run = run});
    if (!refused.ok()) answers->Fail(uid, refused);
  };
  AnswerEach<api::NodeUnprepareResourcesRequest, Response>(options_.loop, options_.deadline,
                                                           message, reply, each);
}

Status DraService::TakeTurn(const std::string& uid, Turn turn) {
  const auto found = turns_.find(uid);
  if (found == turns_.end() && turns_.size() >= kMostBusy)
    return ResourceExhausted("{} claims are under way already", turns_.size());
  if (found != turns_.end() && found->second.size() >= kMostTurns)
    return ResourceExhausted("{} calls about this claim wait already", found->second.size());
  std::deque<Turn>& turns = turns_[uid];
  turns.push_back(std::move(turn));
  if (turns.size() == 1) RunTurn(uid);
  return OkStatus();
}

void DraService::RunTurn(const std::string& uid) {
  const Turn turn = turns_[uid].front();
  turn.run(lifetime_.Guard([this, uid] {
    const auto found = turns_.find(uid);
    found->second.pop_front();
    if (!found->second.empty()) return RunTurn(uid);
    turns_.erase(found);
  }));
}

// If the agent answers a withdrawn Prepare later, nothing is reserved.
void DraService::Withdraw(const std::string& uid) {
  const auto found = turns_.find(uid);
  if (found == turns_.end()) return;
  for (const Turn& turn : found->second)
    if (turn.question != nullptr) turn.question->withdrawn = true;
  const std::shared_ptr<Question> first = found->second.front().question;
  if (first == nullptr) return;
  if (const Prepared done = std::exchange(first->done, nullptr)) done(WasWithdrawn());
}

void DraService::Prepare(const ClaimName& claim, const std::shared_ptr<Question>& question,
                         const Prepared& prepared) {
  if (question->withdrawn) return prepared(WasWithdrawn());
  question->done = prepared;
  options_.get(claim, lifetime_.Guard([this, claim, question](const StatusOr<std::string>& object) {
    const Prepared done = std::exchange(question->done, nullptr);
    if (done == nullptr) return;
    if (!object.ok()) return done(object.status());
    const StatusOr<AllocatedClaim> allocated = ParseClaimObject(*object, claim, options_.driver);
    if (!allocated.ok()) return done(allocated.status());
    if (allocated->devices.empty()) return done(Grant{});
    Reserve(*allocated, done);
  }));
}

void DraService::Reserve(const AllocatedClaim& allocated, const Prepared& done) {
  const bool was_held = IsHeld(allocated.claim.uid);
  options_.holder.Reserve(
      allocated.claim,
      lifetime_.Guard([this, allocated, was_held, done](const StatusOr<ClaimGrant>& grant) {
        if (!grant.ok()) return done(grant.status());
        if (!was_held) options_.changed();
        WriteFile(allocated, *grant, was_held, done);
      }));
}

void DraService::WriteFile(const AllocatedClaim& allocated, const ClaimGrant& grant, bool was_held,
                           const Prepared& done) {
  const std::string& uid = allocated.claim.uid;
  const auto written = [this, allocated, uid, was_held, done](const Status& status) {
    if (status.ok())
      return done(
          Grant{.allocated = allocated, .cdi_device = ClaimDevice(options_.driver.Kind(), uid)});
    if (was_held) return done(status);
    // Without its file no container can use the claim's CPUs, so they are released. A late write
    // may still be done; the removal comes after it.
    options_.holder.Release(uid, lifetime_.Guard([this, uid, status, done](const Status&) {
      options_.changed();
      options_.files.Remove(uid, [](const Status&) {});
      done(status);
    }));
  };
  options_.files.Write({.kind = std::string(options_.driver.Kind()), .metadata = options_.metadata},
                       {.grant = grant, .claim = allocated.claim}, lifetime_.Guard(written));
}

void DraService::Unprepare(const std::string& uid, const Unprepared& done) {
  const bool was_held = IsHeld(uid);
  options_.holder.Release(uid, lifetime_.Guard([this, uid, was_held, done](const Status& released) {
    if (!released.ok()) return done(released);
    if (was_held) options_.changed();
    const auto removed = [this, done](const Status& status) {
      // A file that stays does no harm, and is removed when the disk works again.
      if (!status.ok() && file_warnings_.Pass(options_.loop.Now()))
        GetLogger("dra").Warn("a file of a claim stays: {}", Message(status));
      done(OkStatus());
    };
    options_.files.Remove(uid, lifetime_.Guard(removed));
  }));
}

bool DraService::IsHeld(const std::string& uid) const {
  const std::vector<ClaimGrant> held = options_.holder.Held();
  return std::ranges::any_of(held, [&uid](const ClaimGrant& grant) { return grant.uid == uid; });
}

UnaryServer::Methods WithCounts(UnaryServer::Methods methods, const EventLoop& loop,
                                const std::function<void(const AnsweredCall&)>& tell) {
  if (!tell) return methods;
  for (auto& [path, method] : methods) {
    const bool prepare = path.ends_with(kPrepareMethod);
    if (!prepare && !path.ends_with(kUnprepareMethod)) continue;
    method = [&loop, tell, prepare, inner = std::move(method)](std::string message,
                                                               const UnaryServer::Reply& reply) {
      const auto counted = [&loop, tell, prepare, reply,
                            since = loop.Now()](StatusOr<std::string> answer) {
        AnsweredCall call{.prepare = prepare, .took = loop.Now() - since};
        if (prepare) {
          CountClaims<api::NodePrepareResourcesResponse>(answer, call);
        } else {
          CountClaims<api::NodeUnprepareResourcesResponse>(answer, call);
        }
        tell(call);
        reply(std::move(answer));
      };
      inner(std::move(message), counted);
    };
  }
  return methods;
}

}  // namespace resmgr::dra
