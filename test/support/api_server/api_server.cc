// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/api_server.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kBadRequest = 400;
constexpr int kUnauthorized = 401;
constexpr int kMissing = 404;
constexpr int kConflict = 409;
constexpr int kGone = 410;
constexpr int kUnsupported = 415;
constexpr int kInvalid = 422;

constexpr std::string_view kConfigMaps = "/api/v1/namespaces/kube-system/configmaps";
constexpr std::string_view kEvents = "/api/v1/namespaces/default/events";
// How long a watch sleeps before it looks whether it should end.
constexpr milliseconds kWatchStep{20};

Json StatusObject(int code, std::string_view message) {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"status", "Failure"},
          {"message", message},
          {"code", code}};
}

void SendStatus(HttpServerReply& reply, int code, std::string_view message,
                const std::map<std::string, std::string>& headers = {}) {
  reply.Send(code, StatusObject(code, message).dump(), headers);
}

// Whether the object's fields have the values in the request's field selector, like
// "spec.driver=a,spec.nodeName=b".
bool IsSelected(const Json& object, const HttpServerRequest& request) {
  const auto selector = request.query.find("fieldSelector");
  if (selector == request.query.end()) return true;
  return std::ranges::all_of(Split(selector->second, ','), [&object](std::string_view term) {
    const size_t equals = term.find('=');
    std::string path = fmt::format("/{}", term.substr(0, equals));
    std::ranges::replace(path, '.', '/');
    return object.value(Json::json_pointer(path), "") == term.substr(equals + 1);
  });
}

// The object; only its metadata if the request prefers that.
Json AsAccepted(const HttpServerRequest& request, const Json& object) {
  const auto accept = request.headers.find("accept");
  if (accept == request.headers.end() ||
      accept->second.find("as=PartialObjectMetadata") == std::string::npos) {
    return object;
  }
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object["metadata"]}};
}

bool IsCollection(std::string_view path) {
  return path == ApiServer::kNodes || path == kConfigMaps || path == kEvents ||
         path == ApiServer::kSlices;
}

// "/api/v1/nodes/a" and "/api/v1/nodes/a/status" are both the node "a".
std::pair<std::string, std::string> CollectionAndName(std::string path) {
  constexpr std::string_view kStatus = "/status";
  if (path.ends_with(kStatus)) path.resize(path.size() - kStatus.size());
  const size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

// Another manager than this one that has written the object; "" for none.
std::string OtherManager(const Json& object, const std::string& manager) {
  const Json metadata = object.value("metadata", Json::object());
  for (const Json& entry : metadata.value("managedFields", Json::array()))
    if (entry.value("manager", "") != manager) return entry.value("manager", "");
  return "";
}

std::string Line(std::string_view type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

}  // namespace

ApiServer::ApiServer()
    : server_([this](const HttpServerRequest& request, HttpServerReply& reply) {
        Handle(request, reply);
      }) {}

Status ApiServer::Start() {
  tls_ = false;
  return server_.Start(server_.port());
}

Status ApiServer::StartWithTls(const HttpServer::Tls& tls) {
  tls_ = true;
  return server_.Start(server_.port(), &tls);
}

std::string ApiServer::Url() const {
  return fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", server_.port());
}

std::string ApiServer::Kubeconfig(const std::string& cluster_more, const std::string& user) const {
  return "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: '" +
         Url() + "'" + cluster_more + "}}]\nusers: [{name: u, user: " + user + "}]\n";
}

void ApiServer::SetNode(const std::string& name, const std::map<std::string, std::string>& labels) {
  Json node = objects_.Get(std::string(kNodes), name).value_or(Json::object());
  node["metadata"]["labels"] = labels;
  if (!node["metadata"].contains("uid")) node["metadata"]["uid"] = "uid-" + name;
  objects_.Put(std::string(kNodes), name, node);
}

void ApiServer::SetConfigMap(const std::string& name,
                             const std::map<std::string, std::string>& data) {
  objects_.Put(std::string(kConfigMaps), name, {{"data", data}});
}

void ApiServer::DeleteConfigMap(const std::string& name) {
  objects_.Delete(std::string(kConfigMaps), name);
}

std::string ApiServer::Annotation(const std::string& node, std::string_view key) const {
  const auto object = objects_.Get(std::string(kNodes), node);
  if (!object || !(*object)["metadata"].contains("annotations")) return "";
  return (*object)["metadata"]["annotations"].value(std::string(key), "");
}

std::vector<Json> ApiServer::Events() const {
  return objects_.List(std::string(kEvents));
}

Json ApiServer::Topology(const std::string& node) const {
  return objects_.Get(std::string(kTopologies), node).value_or(Json());
}

void ApiServer::SetClaim(const std::string& name, const std::string& uid,
                         const Allocation& allocation) {
  const std::string capacity =
      allocation.capacity.empty() ? allocation.driver + "/cpu" : allocation.capacity;
  const Json result = {{"request", "cpus"},
                       {"driver", allocation.driver},
                       {"pool", "n1"},
                       {"device", allocation.device},
                       {"shareID", "share-" + uid},
                       {"consumedCapacity", {{capacity, std::to_string(allocation.cpus)}}}};
  Json devices = {{"results", Json::array({result})}};
  if (allocation.share_within_pod || !allocation.parameters.empty()) {
    Json parameters = {{"apiVersion", "cri-resource-manager.intel.com/v1"}, {"kind", "CpuClaim"}};
    if (allocation.share_within_pod) parameters["shareWithin"] = "pod";
    for (const auto& [name, value] : allocation.parameters.items())
      parameters[name] = value;
    const Json config = {{"source", "FromClaim"},
                         {"opaque", {{"driver", allocation.driver}, {"parameters", parameters}}}};
    devices["config"] = Json::array({config});
  }
  Json consumers = Json::array();
  for (const std::string& pod : allocation.pods)
    consumers.push_back({{"resource", "pods"}, {"name", pod}, {"uid", pod}});
  objects_.Put(std::string(kClaims), name,
               {{"metadata", {{"namespace", "default"}, {"uid", uid}}},
                {"status",
                 {{"allocation", {{"devices", std::move(devices)}}}, {"reservedFor", consumers}}}});
}

Json ApiServer::Slice(const std::string& name) const {
  return objects_.Get(std::string(kSlices), name).value_or(Json());
}

void ApiServer::DeleteSlices() {
  for (const Json& slice : objects_.List(std::string(kSlices)))
    objects_.Delete(std::string(kSlices), slice["metadata"]["name"]);
}

void ApiServer::SetTokens(std::set<std::string> tokens) {
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(tokens);
}

void ApiServer::FailNext(int times, int status, std::string_view path_prefix, int retry_after) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({times, status, retry_after, std::string(path_prefix)});
}

void ApiServer::DisturbWatches(WatchFault fault, int code) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  fault_code_ = code;
  ++disturbance_;
}

void ApiServer::Compact(bool as_status) {
  gone_as_status_ = as_status;
  objects_.Compact();
  DisturbWatches(WatchFault::kEnd);
}

std::vector<ApiServer::Request> ApiServer::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void ApiServer::Handle(const HttpServerRequest& request, HttpServerReply& reply) {
  if (const milliseconds delay = delay_; delay.count() > 0) std::this_thread::sleep_for(delay);
  if (Refuse(request, reply)) return;
  if (!topologies_defined_ && request.path.starts_with(kTopologies))
    return SendStatus(reply, kMissing, "the server could not find the requested resource");
  if (request.method == "DELETE") return Delete(request, reply);
  if (request.method == "PATCH") return Patch(request, reply);
  if (request.method == "POST") return Create(request, reply);
  if (request.method == "PUT") return Replace(request, reply);
  if (!IsCollection(request.path)) return Get(request, reply);
  if (request.query.contains("watch")) return Watch(request, reply);
  List(request, reply);
}

bool ApiServer::Refuse(const HttpServerRequest& request, HttpServerReply& reply) {
  const auto header = [&request](const char* name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? "" : found->second;
  };
  std::optional<Failure> failure;
  bool unauthorized = false;
  {
    const std::lock_guard lock(mutex_);
    const std::string authorization = header("authorization");
    requests_.push_back({request.method, request.path, request.query, authorization,
                         header("content-type"), header("accept"), !request.client.empty()});
    constexpr std::string_view kBearer = "Bearer ";
    unauthorized = !tokens_.empty() && (!authorization.starts_with(kBearer) ||
                                        !tokens_.contains(authorization.substr(kBearer.size())));
    for (Failure& planned : failures_) {
      if (planned.times == 0 || !request.path.starts_with(planned.path_prefix)) continue;
      --planned.times;
      failure = planned;
      break;
    }
  }
  if (failure) {
    std::map<std::string, std::string> headers;
    if (failure->retry_after > 0) headers["Retry-After"] = std::to_string(failure->retry_after);
    SendStatus(reply, failure->status, "this test wants a failure", headers);
    return true;
  }
  if (unauthorized) SendStatus(reply, kUnauthorized, "Unauthorized");
  return unauthorized;
}

void ApiServer::Get(const HttpServerRequest& request, HttpServerReply& reply) {
  const auto [collection, name] = CollectionAndName(request.path);
  const auto object = objects_.Get(collection, name);
  if (!object) {
    Json missing = StatusObject(kMissing, request.path + " not found");
    missing["details"] = {{"name", name}};
    reply.Send(kMissing, missing.dump());
    return;
  }
  reply.Send(kOk, object->dump());
}

void ApiServer::List(const HttpServerRequest& request, HttpServerReply& reply) {
  const uint64_t version = objects_.version();
  Json items = Json::array();
  for (const Json& object : objects_.List(request.path)) {
    if (IsSelected(object, request)) items.push_back(AsAccepted(request, object));
  }
  reply.Send(kOk, Json{{"kind", "List"},
                       {"metadata", {{"resourceVersion", std::to_string(version)}}},
                       {"items", items}}
                      .dump());
}

bool ApiServer::SendLine(HttpServerReply& reply, const std::string& line) {
  if (!trickle_) return reply.SendPiece(line);
  for (const char c : line) {
    if (!reply.SendPiece(std::string_view(&c, 1))) return false;
  }
  return true;
}

void ApiServer::Disturb(HttpServerReply& reply) {
  WatchFault fault{};
  int code = 0;
  {
    const std::lock_guard lock(mutex_);
    fault = fault_;
    code = fault_code_;
  }
  switch (fault) {
    case WatchFault::kEnd:
      break;
    case WatchFault::kCut:
      reply.SendPiece(R"({"type":"MODIFIED","object":{"metadata":{"na)");
      return reply.Cut();
    case WatchFault::kGarbage:
      reply.SendPiece("\x01\xff no JSON at all }{\n");
      break;
    case WatchFault::kError:
      reply.SendPiece(Line("ERROR", StatusObject(code, "this test wants an error")));
      break;
  }
  reply.EndPieces();
}

bool ApiServer::SendChanges(const HttpServerRequest& request, HttpServerReply& reply,
                            uint64_t& version) {
  for (const ObjectStore::Change& change : objects_.ChangesAfter(version, kWatchStep)) {
    version = change.version;
    if (change.collection != request.path || !IsSelected(change.object, request)) continue;
    if (!SendLine(reply, Line(change.type, AsAccepted(request, change.object)))) return false;
  }
  return true;
}

void ApiServer::Watch(const HttpServerRequest& request, HttpServerReply& reply) {
  // Read first, so that any later disturbance affects this watch.
  const uint64_t disturbance = disturbance_;
  uint64_t version = ParseUint(request.query.at("resourceVersion")).value_or(0);
  if (objects_.IsCompacted(version)) {
    if (gone_as_status_) return SendStatus(reply, kGone, "too old resource version");
    reply.SendPiece(Line("ERROR", StatusObject(kGone, "too old resource version")));
    reply.EndPieces();
    return;
  }
  const auto timeout = request.query.find("timeoutSeconds");
  const auto end =
      Clock::now() + std::chrono::seconds(timeout == request.query.end()
                                              ? 60
                                              : ParseInt(timeout->second).value_or(60));
  auto bookmark = Clock::now() + bookmark_interval_.load();
  reply.SendPiece("");
  ++watches_;
  while (Clock::now() < end && disturbance == disturbance_ && reply.PeerIsThere() &&
         SendChanges(request, reply, version)) {
    if (Clock::now() < bookmark || !request.query.contains("allowWatchBookmarks")) continue;
    bookmark = Clock::now() + bookmark_interval_.load();
    SendLine(reply,
             Line("BOOKMARK", {{"metadata", {{"resourceVersion", std::to_string(version)}}}}));
    ++bookmarks_;
  }
  --watches_;
  if (disturbance != disturbance_) return Disturb(reply);
  reply.EndPieces();
}

void ApiServer::Patch(const HttpServerRequest& request, HttpServerReply& reply) {
  const auto type = request.headers.find("content-type");
  if (type != request.headers.end() && type->second == "application/apply-patch+yaml")
    return Apply(request, reply);
  if (type == request.headers.end() || type->second != "application/merge-patch+json") {
    return SendStatus(reply, kUnsupported, "this server knows merge patches");
  }
  const auto [collection, name] = CollectionAndName(request.path);
  bool conflict = false;
  const auto object = objects_.MergePatch(collection, name, Json::parse(request.body), conflict);
  if (!object) return SendStatus(reply, kMissing, request.path + " not found");
  if (conflict) return SendStatus(reply, kConflict, "the object has been modified");
  reply.Send(kOk, AsAccepted(request, *object).dump());
}

// The lists of such objects are replaced whole: the program that applies one owns all of it.
void ApiServer::Apply(const HttpServerRequest& request, HttpServerReply& reply) {
  const auto [collection, name] = CollectionAndName(request.path);
  const auto manager = request.query.find("fieldManager");
  if (manager == request.query.end())
    return SendStatus(reply, kBadRequest, "fieldManager is required for apply patch");
  Json object = Json::parse(request.body);
  // An empty text counts as null for Kubernetes 1.20, and no field of these objects may be null.
  const Json values = object.flatten();
  if (std::ranges::find(values, Json("")) != values.end())
    return SendStatus(reply, kInvalid, request.path + " is invalid: Invalid value: \"null\"");
  const auto former = objects_.Get(collection, name);
  const std::string other = former ? OtherManager(*former, manager->second) : "";
  if (!other.empty() && (*former)["zones"] != object["zones"]) {
    return SendStatus(reply, kConflict,
                      "Apply failed with 1 conflict: conflict with \"" + other + "\": .zones");
  }
  object["metadata"]["managedFields"] =
      Json::array({{{"manager", manager->second}, {"operation", "Apply"}}});
  reply.Send(former ? kOk : kCreated,
             AsAccepted(request, objects_.Put(collection, name, std::move(object))).dump());
}

void ApiServer::Delete(const HttpServerRequest& request, HttpServerReply& reply) {
  const auto [collection, name] = CollectionAndName(request.path);
  const auto object = objects_.Get(collection, name);
  if (!object) return SendStatus(reply, kMissing, request.path + " not found");
  const Json options = request.body.empty() ? Json::object() : Json::parse(request.body);
  const Json conditions = options.value("preconditions", Json::object());
  const std::string version = conditions.value("resourceVersion", "");
  if (!version.empty() && version != (*object)["metadata"].value("resourceVersion", ""))
    return SendStatus(reply, kConflict, "the object has been modified");
  objects_.Delete(collection, name);
  reply.Send(kOk, Json{{"kind", "Status"}, {"status", "Success"}}.dump());
}

void ApiServer::Replace(const HttpServerRequest& request, HttpServerReply& reply) {
  const auto [collection, name] = CollectionAndName(request.path);
  const auto former = objects_.Get(collection, name);
  if (!former) return SendStatus(reply, kMissing, request.path + " not found");
  Json object = Json::parse(request.body);
  if (object["metadata"].value("resourceVersion", "") !=
      (*former)["metadata"].value("resourceVersion", ""))
    return SendStatus(reply, kConflict, "the object has been modified");
  reply.Send(kOk, objects_.Put(collection, name, std::move(object)).dump());
}

void ApiServer::Create(const HttpServerRequest& request, HttpServerReply& reply) {
  Json object = Json::parse(request.body);
  std::string name = object["metadata"].value("name", "");
  if (name.empty()) {
    const std::lock_guard lock(mutex_);
    name = object["metadata"].value("generateName", "") + std::to_string(++events_);
  }
  if (request.path == kSlices && objects_.Get(request.path, name))
    return SendStatus(reply, kConflict, name + " already exists");
  if (request.path == kSlices) object["metadata"]["uid"] = "uid-" + name;
  reply.Send(kCreated, objects_.Put(request.path, name, std::move(object)).dump());
}

}  // namespace resmgr::test
