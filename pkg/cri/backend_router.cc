// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/backend_router.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/messages.h"

namespace resmgr {

namespace {

using Kind = IdOwners::Kind;

// Pods and containers are listed by the RuntimeService, also if the call is one of the
// ImageService.
std::string RuntimeServiceOf(std::string_view service) {
  return fmt::format("{}.RuntimeService", service.substr(0, service.rfind('.')));
}

std::string_view ListMethod(Kind kind) {
  return kind == Kind::kPodSandbox ? "ListPodSandbox" : "ListContainers";
}

}  // namespace

// The state of one runtime.
struct BackendRouter::Peer {
  std::unique_ptr<UnaryClient> client;
  uint64_t begun = 0;   // number of runs of its lists begun so far
  size_t lists_left{};  // unanswered lists of the current run; 0: no run is under way
  Status failure{};     // first failure in the latest run
  std::string next{};   // service to list in the next run; empty: no further run is wanted
};

// The state of one Search.
struct BackendRouter::Searching {
  Wanted wanted;
  std::function<void(Status)> done;
  std::vector<std::optional<uint64_t>>
      runs;  // for each runtime the run to wait for; nullopt: do not wait
  Status failure{};
  EventLoop::HandlePtr patience{};
};

BackendRouter::BackendRouter(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends)
    : loop_(loop), backends_(backends), image_needs_(loop, flushes, backends) {
  for (const Backends::Backend& backend : backends_.all())
    peers_.push_back({.client = std::make_unique<UnaryClient>(loop, flushes, backend.socket)});
}

BackendRouter::~BackendRouter() = default;

void BackendRouter::Search(Wanted wanted, std::function<void(Status)> done) {
  Searching& search = *searches_.emplace_back(
      std::make_unique<Searching>(Searching{.wanted = std::move(wanted),
                                            .done = std::move(done),
                                            .runs = decltype(Searching::runs)(peers_.size())}));
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    search.runs[i] = peer.begun + 1;
    if (peer.lists_left == 0) {
      Begin(i, search.wanted.service);
    } else {
      peer.next = search.wanted.service;
    }
  }
  // A hanging runtime gets only one turn of the loop, in which an answer that is already there
  // counts.
  search.patience = loop_.After(std::chrono::milliseconds(0), [this, &search] {
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (!search.runs[i] || !backends_.Hangs(i)) continue;
      search.runs[i].reset();
      search.failure.Update(Unavailable("runtime {}: it does not answer", backends_.all()[i].name));
    }
    search.patience = loop_.After(search.wanted.patience, [this, &search] {
      for (size_t i = 0; i < peers_.size(); ++i) {
        if (!search.runs[i].has_value()) continue;
        search.runs[i].reset();
        search.failure.Update(Unavailable("runtime {}: no answer within {} ms",
                                          backends_.all()[i].name, search.wanted.patience.count()));
      }
      EndThoseThatAreOver();
    });
    EndThoseThatAreOver();
  });
}

void BackendRouter::Begin(size_t backend, std::string_view service) {
  Peer& peer = peers_[backend];
  ++peer.begun;
  peer.failure = OkStatus();
  peer.lists_left = 2;
  peer.next.clear();
  // If this fails, the lists below report it.
  if (!peer.client->connected()) (void)peer.client->Connect([](const Status&) {});
  const IdOwners::ListBegin begin = backends_.owners().BeginList();
  // Pods are listed first: a container in a pod of another runtime must not count as this one's.
  List(backend, service, Kind::kPodSandbox, begin);
  List(backend, service, Kind::kContainer, begin);
}

void BackendRouter::List(size_t backend, std::string_view service, Kind kind,
                         IdOwners::ListBegin begin) {
  peers_[backend].client->Call(
      fmt::format("{}/{}", service, ListMethod(kind)), "", kListTimeout,
      [this, backend, kind, begin](const StatusOr<std::string>& reply) {
        const bool late = reply.status().code() == StatusCode::kDeadlineExceeded;
        if (reply.ok() || late) backends_.NoteAnswer(backend, !late);
        const Status learned = reply.ok()
                                   ? LearnList(backends_.owners(), kind, backend, *reply, begin)
                                   : reply.status();
        OnListed(backend, learned.ok()
                              ? OkStatus()
                              : Unavailable("runtime {}: {}", backends_.all()[backend].name,
                                            Message(learned)));
      });
}

void BackendRouter::OnListed(size_t backend, const Status& status) {
  Peer& peer = peers_[backend];
  peer.failure.Update(status);
  if (--peer.lists_left > 0) return;
  const uint64_t run = peer.begun;
  const Status failure = peer.failure;
  if (!peer.next.empty() && !backends_.Hangs(backend)) Begin(backend, std::string(peer.next));
  Tell(backend, run, failure);
}

void BackendRouter::Tell(size_t backend, uint64_t run, const Status& status) {
  const bool hangs = backends_.Hangs(backend);
  for (const std::unique_ptr<Searching>& search : searches_) {
    std::optional<uint64_t>& wanted = search->runs[backend];
    // A search that wants a later run does not wait for it if the runtime hangs.
    if (!wanted || (*wanted > run && !hangs)) continue;
    wanted.reset();
    search->failure.Update(status);
  }
  EndThoseThatAreOver();
}

void BackendRouter::EndThoseThatAreOver() {
  const auto is_over = [this](const std::unique_ptr<Searching>& search) {
    return backends_.owners().Knows(search->wanted.kind, search->wanted.id) ||
           std::ranges::none_of(search->runs, &std::optional<uint64_t>::has_value);
  };
  const auto first =
      std::stable_partition(searches_.begin(), searches_.end(), std::not_fn(is_over));
  const std::vector<std::unique_ptr<Searching>> ended(std::make_move_iterator(first),
                                                      std::make_move_iterator(searches_.end()));
  searches_.erase(first, searches_.end());
  // These functions may begin another search, so they run after the list was changed.
  for (const std::unique_ptr<Searching>& search : ended)
    search->done(search->failure);
}

std::unique_ptr<CallRouting> CallRouting::Begin(BackendRouter& router, const Method& method) {
  const CallRoute route = RouteOf(method);
  if (route.by == CallRoute::By::kDefault) return nullptr;
  return std::make_unique<CallRouting>(router, method, route);
}

CallRouting::CallRouting(BackendRouter& router, const Method& method, const CallRoute& route)
    : router_(router),
      route_(route),
      service_(RuntimeServiceOf(method.path.substr(0, method.path.rfind('/')))),
      about_images_(method.service == Service::kImage),
      log_(GetLogger("cri")),
      list_begin_(router.backends().owners().BeginList()) {}

void CallRouting::Choose(std::string_view request, std::chrono::milliseconds patience,
                         std::function<void(Status)> done) {
  const StatusOr<RouteKeys> keys = ReadRouteKeys(route_, request);
  if (!keys.ok()) return done(keys.status());
  id_ = keys->id;
  pod_uid_ = keys->pod_uid;
  filtered_ = keys->filtered;
  const auto choice = backends().Choose(route_, *keys);
  if (!choice.ok()) return done(choice.status());
  all_ = choice->kind == Backends::Choice::Kind::kAll;
  backend_ = choice->backend;
  if (all_ && route_.spares_needed && !keys->image.empty()) {
    image_ = keys->image;
    return router_.image_needs().Ask(
        image_, service_.substr(0, service_.rfind('.')), patience,
        lifetime_.Guard([this, done = std::move(done)](const ImageNeeds::Needs& needs) {
          done(SpareThoseInNeed(needs));
        }));
  }
  if (choice->kind != Backends::Choice::Kind::kUnknownId) return done(OkStatus());
  router_.Search({.kind = route_.id_kind, .id = id_, .service = service_, .patience = patience},
                 lifetime_.Guard([this, done = std::move(done)](const Status& listed) {
                   done(ChooseAgain(listed));
                 }));
}

// If all runtimes were listed and none has the id, the default runtime gets the call and reports
// the error. If one could not be listed, it may have the id, so "not found" would be wrong.
Status CallRouting::ChooseAgain(const Status& listed) {
  const auto owner = backends().owners().Find(route_.id_kind, id_);
  if (!owner.ok()) return owner.status();
  if (*owner) backend_ = **owner;
  return *owner ? OkStatus() : listed;
}

// A runtime that could not be asked whether it needs the image keeps it, and the client gets an
// error.
Status CallRouting::SpareThoseInNeed(const ImageNeeds::Needs& needs) {
  constexpr size_t kLongestImage = 256;
  std::vector<std::string_view> needing;
  bool some_removed = false;
  Status failure;
  for (size_t i = 0; i < needs.size(); ++i) {
    std::optional<Status>& settled = settled_.emplace_back();
    if (!needs[i].ok()) {
      settled = needs[i].status();
      failure.Update(needs[i].status());
    } else if (*needs[i]) {
      settled = OkStatus();
      needing.push_back(backends().all()[i].name);
    } else {
      some_removed = true;
    }
  }
  if (needing.empty()) return OkStatus();
  if (some_removed) {
    log_.Info("image {} stays at runtimes {}, which need it", Printable(image_, kLongestImage),
              fmt::join(needing, ", "));
    return OkStatus();
  }
  if (!failure.ok()) return failure;
  return FailedPrecondition(
      "image {} is in use: runtimes {} pin it or have containers of it; remove these first",
      Printable(image_, kLongestImage), fmt::join(needing, ", "));
}

std::string_view CallRouting::SocketOf(const Backends::Backend& backend) const {
  return about_images_ && !backend.image_socket.empty() ? backend.image_socket : backend.socket;
}

bool CallRouting::ReadsReply() const {
  return route_.tells == CallRoute::Tells::kNewPodSandbox ||
         route_.tells == CallRoute::Tells::kNewContainer;
}

Status CallRouting::OnReply(std::string_view message) {
  using Tells = CallRoute::Tells;
  IdOwners& owners = router_.backends().owners();
  switch (route_.tells) {
    case Tells::kNewPodSandbox:
      refusal_ = Claim(Kind::kPodSandbox, message);
      if (refusal_.ok()) (void)owners.Add(Kind::kPodUid, pod_uid_, backend_);
      break;
    case Tells::kNewContainer:
      refusal_ = Claim(Kind::kContainer, message);
      break;
    case Tells::kRemoved:
      owners.Remove(route_.id_kind, id_, backend_);
      break;
    case Tells::kNothing:
    case Tells::kList:
    case Tells::kPart:
    case Tells::kEvent:
      break;
  }
  return refusal_;
}

// A new id must not be one that another runtime has: the client and the stages would act on that
// runtime's object.
Status CallRouting::Claim(Kind kind, std::string_view message) {
  const auto id = DecodeId(message);
  if (!id.ok() || router_.backends().owners().Add(kind, *id, backend_)) return OkStatus();
  return AlreadyExists("runtime {} gave the new {} the id {}, which another runtime's has",
                       backend().name, kind == Kind::kContainer ? "container" : "pod sandbox",
                       Printable(*id));
}

void CallRouting::OnReplies(std::vector<h2::SliceQueue>& messages) {
  if (route_.tells != CallRoute::Tells::kList) return;
  if (route_.image_ids != ImageIds::In::kNone) {
    for (const h2::SliceQueue& message : messages)
      backends().image_ids().Note(route_.image_ids, message.ToString());
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string message = messages[i].ToString();
    if (!filtered_) {
      (void)LearnList(router_.backends().owners(), route_.id_kind, i, message, list_begin_);
    }
    const std::optional<std::string> own =
        Shown(message, WithoutThoseOfOthers(backends(), route_.id_kind, i, message));
    if (!own) continue;
    messages[i].Clear();
    messages[i].Append(h2::Slice::Copy(*own));
  }
}

// `own`: the message without entries of other runtimes; nullopt: there are none, so `message` is
// used.
std::optional<std::string> CallRouting::Shown(std::string_view message,
                                              std::optional<std::string> own) const {
  std::optional<std::string> shown =
      backends().image_ids().AsShown(route_.image_ids, own ? std::string_view(*own) : message);
  return shown ? std::move(shown) : std::move(own);
}

std::optional<std::string> CallRouting::Rewrite(std::string_view message) {
  backends().image_ids().Note(route_.image_ids, message);
  return Shown(message, std::nullopt);
}

std::optional<std::string> CallRouting::OwnPart(size_t runtime, std::string_view message) const {
  backends().image_ids().Note(route_.image_ids, message);
  if (route_.tells == CallRoute::Tells::kPart) {
    return Shown(message, WithoutThoseOfOthers(backends(), route_.id_kind, runtime, message));
  }
  constexpr uint32_t kContainerId = 1;  // of ContainerEventResponse; also for a pod sandbox
  if (route_.tells == CallRoute::Tells::kEvent &&
      backends().IsEventOfOther(runtime, TextOfField(message, kContainerId))) {
    return "";
  }
  return Shown(message, std::nullopt);
}

}  // namespace resmgr
