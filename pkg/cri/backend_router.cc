// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/backend_router.h"

#include <chrono>
#include <utility>

#include "pkg/cri/messages.h"

namespace resmgr {

namespace {

using Kind = IdOwners::Kind;

constexpr std::chrono::seconds kListTimeout{10};

// Pods and containers are the RuntimeService's, also where a call about an image asks for them.
std::string RuntimeServiceOf(std::string_view service) {
  return fmt::format("{}.RuntimeService", service.substr(0, service.rfind('.')));
}

// What a runtime has by an unfiltered list.
void LearnList(IdOwners& owners, Kind kind, size_t backend, std::string_view list,
               IdOwners::ListBegin begin) {
  if (const auto ids = ReadListedIds(list); ids.ok()) owners.SetAll(kind, backend, *ids, begin);
  if (kind != Kind::kPodSandbox) return;
  if (const auto uids = ReadListedPodUids(list); uids.ok())
    owners.SetAll(Kind::kPodUid, backend, *uids, begin);
}

std::string_view ListMethod(Kind kind) {
  return kind == Kind::kPodSandbox ? "ListPodSandbox" : "ListContainers";
}

}  // namespace

// One run of Search.
struct BackendRouter::Listing {
  std::string service;
  IdOwners::ListBegin begin;
};

BackendRouter::BackendRouter(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends)
    : backends_(backends) {
  for (const Backends::Backend& backend : backends_.all())
    clients_.push_back(std::make_unique<UnaryClient>(loop, flushes, backend.socket));
}

BackendRouter::~BackendRouter() = default;

void BackendRouter::Search(std::string_view service, std::function<void(Status)> done) {
  Waiting waiting{.service = std::string(service), .done = std::move(done)};
  if (lists_left_ > 0) {
    late_.push_back(std::move(waiting));
    return;
  }
  waiting_.push_back(std::move(waiting));
  ListAll(service);
}

void BackendRouter::ListAll(std::string_view service) {
  const auto listing = std::make_shared<Listing>(
      Listing{.service = std::string(service), .begin = backends_.owners().BeginList()});
  failure_ = OkStatus();
  lists_left_ = 2 * clients_.size();
  for (size_t i = 0; i < clients_.size(); ++i) {
    // A failure is that of the calls.
    if (!clients_[i]->connected()) (void)clients_[i]->Connect([](const Status&) {});
    List(i, listing, Kind::kPodSandbox);
    List(i, listing, Kind::kContainer);
  }
}

void BackendRouter::List(size_t backend, const std::shared_ptr<Listing>& listing, Kind kind) {
  clients_[backend]->Call(
      fmt::format("{}/{}", listing->service, ListMethod(kind)), "", kListTimeout,
      [this, backend, listing, kind](const StatusOr<std::string>& reply) {
        const auto ids = reply.ok() ? ReadListedIds(*reply) : reply.status();
        if (ids.ok()) LearnList(backends_.owners(), kind, backend, *reply, listing->begin);
        OnListed(ids.ok() ? OkStatus()
                          : Unavailable("runtime {}: {}", backends_.all()[backend].name,
                                        Message(ids.status())));
      });
}

void BackendRouter::OnListed(const Status& status) {
  if (failure_.ok()) failure_ = status;
  if (--lists_left_ > 0) return;
  const std::vector<Waiting> listed = std::exchange(waiting_, std::exchange(late_, {}));
  const Status failure = failure_;
  // Before anything is told: what that leads to may be a search of its own.
  if (!waiting_.empty()) ListAll(waiting_.front().service);
  for (const Waiting& waiting : listed)
    waiting.done(failure);
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
      list_begin_(router.backends().owners().BeginList()) {}

void CallRouting::Choose(std::string_view request, std::function<void(Status)> done) {
  const StatusOr<RouteKeys> keys = ReadRouteKeys(route_, request);
  if (!keys.ok()) return done(keys.status());
  id_ = keys->id;
  pod_uid_ = keys->pod_uid;
  filtered_ = keys->filtered;
  const auto choice = backends().Choose(route_, *keys);
  if (!choice.ok()) return done(choice.status());
  all_ = choice->kind == Backends::Choice::Kind::kAll;
  backend_ = choice->backend;
  if (choice->kind != Backends::Choice::Kind::kUnknownId) return done(OkStatus());
  router_.Search(service_, [this, alive = std::weak_ptr<void>(alive_),
                            done = std::move(done)](const Status& listed) {
    if (!alive.expired()) done(ChooseAgain(listed));
  });
}

// Where all runtimes were listed and none has the id, the default one says so in its own words.
// Where one could not be, the id may be of that one, and "not found" would be wrong.
Status CallRouting::ChooseAgain(const Status& listed) {
  const auto owner = backends().owners().Find(route_.id_kind, id_);
  if (!owner.ok()) return owner.status();
  if (*owner) backend_ = **owner;
  return *owner ? OkStatus() : listed;
}

std::string_view CallRouting::SocketOf(const Backends::Backend& backend) const {
  return about_images_ && !backend.image_socket.empty() ? backend.image_socket : backend.socket;
}

bool CallRouting::ReadsReply() const {
  return route_.tells == CallRoute::Tells::kNewPodSandbox ||
         route_.tells == CallRoute::Tells::kNewContainer;
}

void CallRouting::OnReply(std::string_view message) {
  using Tells = CallRoute::Tells;
  IdOwners& owners = router_.backends().owners();
  switch (route_.tells) {
    case Tells::kNewPodSandbox:
    case Tells::kNewContainer:
      if (const auto id = DecodeId(message); id.ok()) {
        owners.Add(route_.tells == Tells::kNewContainer ? Kind::kContainer : Kind::kPodSandbox, *id,
                   backend_);
      }
      owners.Add(Kind::kPodUid, pod_uid_, backend_);
      break;
    case Tells::kRemoved:
      owners.Remove(route_.id_kind, id_);
      break;
    case Tells::kNothing:
    case Tells::kList:
      break;
  }
}

void CallRouting::OnReplies(const std::vector<h2::SliceQueue>& messages) {
  if (route_.tells != CallRoute::Tells::kList || filtered_) return;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string message = messages[i].ToString();
    LearnList(router_.backends().owners(), route_.id_kind, i, message, list_begin_);
  }
}

}  // namespace resmgr
