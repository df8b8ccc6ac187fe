// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "test/support/api_server/http_server.h"
#include "test/support/api_server/object_store.h"

namespace resmgr::test {

// As much of a Kubernetes API server as a client of nodes, ConfigMaps, events,
// NodeResourceTopologies, ResourceSlices and ResourceClaims sees: get, list, watch with versions
// and bookmarks, merge patches, server-side apply of whole objects, creation, replacement,
// deletion, bearer tokens; and everything that can go wrong with it, on demand. The objects outlive
// Stop and Start. Thread-safe.
class ApiServer {
 public:
  static constexpr std::string_view kNodes = "/api/v1/nodes";
  static constexpr std::string_view kTopologies =
      "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

  static constexpr std::string_view kSlices = "/apis/resource.k8s.io/v1/resourceslices";
  static constexpr std::string_view kClaims =
      "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

  struct Request {
    std::string method;
    std::string path;
    std::map<std::string, std::string> query;
    std::string authorization;
    std::string content_type;
    std::string accept;
    bool client_certificate = false;

    bool IsWatch() const { return query.contains("watch"); }
  };

  ApiServer();

  // Uses the same port again after the first time.
  Status Start();
  Status StartWithTls(const HttpServer::Tls& tls);
  void Stop() { server_.Stop(); }
  // "http://127.0.0.1:PORT", or with https.
  std::string Url() const;
  // A kubeconfig of a client of this server, with these lines of a cluster and a user, in flow
  // style.
  std::string Kubeconfig(const std::string& cluster_more = "",
                         const std::string& user = "{}") const;

  ObjectStore& objects() { return objects_; }
  // The node gets just these labels; everything else about it stays.
  void SetNode(const std::string& name, const std::map<std::string, std::string>& labels);
  void SetConfigMap(const std::string& name, const std::map<std::string, std::string>& data);
  void DeleteConfigMap(const std::string& name);
  // The value of an annotation of a node, "" without it.
  std::string Annotation(const std::string& node, std::string_view key) const;
  std::vector<Json> Events() const;
  // Whether there is a CustomResourceDefinition of NodeResourceTopology. Without it, its paths are
  // not found.
  void DefineTopologies(bool defined) { topologies_defined_ = defined; }
  // A node's NodeResourceTopology; null where there is none.
  Json Topology(const std::string& node) const;

  // A claim of the namespace default, as a scheduler has allocated it: so many CPUs of one device.
  struct Allocation {
    std::string driver{};
    std::string device{};
    int cpus = 0;
    std::string capacity{};           // the name of what it consumes; "": DRIVER/cpu
    bool share_within_pod = false;    // by its parameters
    Json parameters{};                // more of them
    std::vector<std::string> pods{};  // uids of those that it is reserved for
  };
  void SetClaim(const std::string& name, const std::string& uid, const Allocation& allocation);
  void DeleteClaim(const std::string& name) { objects_.Delete(std::string(kClaims), name); }
  // A ResourceSlice; null where there is none.
  Json Slice(const std::string& name) const;
  // Deletes all of them, as a kubelet does when it starts.
  void DeleteSlices();

  // Only these bearer tokens are good from now on; none: requests are not checked.
  void SetTokens(std::set<std::string> tokens);
  // The next requests whose path and query begin so are answered with this status.
  void FailNext(int times, int status, std::string_view path_prefix = "/", int retry_after = 0);
  // Every reply comes later.
  void SetDelay(std::chrono::milliseconds delay) { delay_ = delay; }
  // Watches get their bytes one by one.
  void SetTrickle(bool trickle) { trickle_ = trickle; }
  void SetBookmarkInterval(std::chrono::milliseconds interval) { bookmark_interval_ = interval; }
  // All watches end: in good order, in the middle of a line, with a line that is not JSON, or with
  // an ERROR event of that code.
  enum class WatchFault { kEnd, kCut, kGarbage, kError };
  void DisturbWatches(WatchFault fault, int code = 0);
  // A watch from before now gets 410 Gone: as an ERROR event, or as the reply's status.
  void Compact(bool as_status);

  int watches() const { return watches_; }
  // The number of bookmarks sent so far.
  uint64_t bookmarks() const { return bookmarks_; }
  std::vector<Request> Requests() const;

 private:
  void Handle(const HttpServerRequest& request, HttpServerReply& reply);
  bool Refuse(const HttpServerRequest& request, HttpServerReply& reply);
  void Get(const HttpServerRequest& request, HttpServerReply& reply);
  void List(const HttpServerRequest& request, HttpServerReply& reply);
  void Watch(const HttpServerRequest& request, HttpServerReply& reply);
  bool SendChanges(const HttpServerRequest& request, HttpServerReply& reply, uint64_t& version);
  bool SendLine(HttpServerReply& reply, const std::string& line);
  void Disturb(HttpServerReply& reply);
  void Patch(const HttpServerRequest& request, HttpServerReply& reply);
  void Apply(const HttpServerRequest& request, HttpServerReply& reply);
  void Delete(const HttpServerRequest& request, HttpServerReply& reply);
  void Replace(const HttpServerRequest& request, HttpServerReply& reply);
  void Create(const HttpServerRequest& request, HttpServerReply& reply);

  ObjectStore objects_;
  std::atomic<std::chrono::milliseconds> delay_{std::chrono::milliseconds(0)};
  std::atomic<std::chrono::milliseconds> bookmark_interval_{std::chrono::milliseconds(60'000)};
  std::atomic<bool> trickle_{false};
  std::atomic<bool> gone_as_status_{false};
  std::atomic<bool> topologies_defined_{true};
  std::atomic<int> watches_{0};
  std::atomic<uint64_t> bookmarks_{0};
  std::atomic<uint64_t> disturbance_{0};  // counts them

  mutable std::mutex mutex_;  // guards the following members
  WatchFault fault_ = WatchFault::kEnd;
  int fault_code_ = 0;
  struct Failure {
    int times = 0;
    int status = 0;
    int retry_after = 0;
    std::string path_prefix;
  };
  std::vector<Failure> failures_;
  std::set<std::string> tokens_;
  std::vector<Request> requests_;
  uint64_t events_ = 0;

  bool tls_ = false;
  HttpServer server_;  // last: its threads use the rest
};

}  // namespace resmgr::test
