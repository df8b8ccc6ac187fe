// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_kubelet/fake_kubelet.h"

#include <algorithm>
#include <utility>

#include "pkg/base/wire.h"

namespace resmgr::test {

StatusOr<std::unique_ptr<FakeKubelet>> FakeKubelet::Start(const std::string& socket, Get get) {
  std::unique_ptr<FakeKubelet> kubelet(new FakeKubelet(get));
  RESMGR_ASSIGN_OR_RETURN(kubelet->server_, UnaryServer::Create(kubelet->loop_, kubelet->flushes_,
                                                                socket, kubelet->Methods()));
  kubelet->thread_ = std::thread([raw = kubelet.get()] {
    raw->loop_.Run();
    raw->held_.clear();
    raw->server_.reset();
  });
  return kubelet;
}

FakeKubelet::~FakeKubelet() {
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

void FakeKubelet::Give(const std::string& namespace_name, const std::string& pod,
                       const std::string& container, std::vector<Devices> devices) {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(pods_, [&](const Pod& known) {
    return known.namespace_name == namespace_name && known.name == pod;
  });
  if (found == pods_.end()) found = pods_.insert(pods_.end(), Pod{namespace_name, pod, {}});
  found->containers[container] = std::move(devices);
}

UnaryServer::Methods FakeKubelet::Methods() {
  UnaryServer::Methods methods;
  const auto answer = [this](UnaryServer::Reply reply, StatusOr<std::string> text) {
    if (hangs_) {
      held_.push_back(std::move(reply));
    } else if (refused_ > 0) {
      --refused_;
      reply(MakeStatus(StatusCode::kResourceExhausted, "rejected by rate limit"));
    } else {
      reply(std::move(text));
    }
  };
  methods["/v1.PodResourcesLister/List"] = [this, answer](const std::string&,
                                                          UnaryServer::Reply reply) {
    ++lists_;
    answer(std::move(reply), AnswerList());
  };
  if (get_ == Get::kMissing) return methods;
  methods["/v1.PodResourcesLister/Get"] = [this, answer](const std::string& request,
                                                         UnaryServer::Reply reply) {
    ++gets_;
    answer(std::move(reply), AnswerGet(request));
  };
  return methods;
}

StatusOr<std::string> FakeKubelet::AnswerGet(const std::string& request) {
  if (get_ == Get::kDisabled) {
    return MakeStatus(StatusCode::kUnknown, "PodResources API Get method disabled");
  }
  std::string name;
  std::string namespace_name;
  for (WireReader reader(request); reader.Next();) {
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() == 2) namespace_name = reader.bytes();
  }
  const std::lock_guard lock(mutex_);
  for (const Pod& pod : pods_) {
    if (pod.name == name && pod.namespace_name == namespace_name) return Encoded(pod);
  }
  return MakeStatus(StatusCode::kUnknown,
                    fmt::format("pod {} in namespace {} not found", name, namespace_name));
}

std::string FakeKubelet::AnswerList() {
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const Pod& pod : pods_)
    all += Encoded(pod);
  return all;
}

// The pod as field 1 of the answers of Get and List.
std::string FakeKubelet::Encoded(const Pod& pod) {
  std::string out;
  {
    FieldWriter fields(out);
    const size_t all = fields.Begin(1);
    fields.Bytes(1, pod.name);
    fields.Bytes(2, pod.namespace_name);
    for (const auto& [name, entries] : pod.containers) {
      const size_t container = fields.Begin(3);
      fields.Bytes(1, name);
      for (const Devices& entry : entries) {
        const size_t devices = fields.Begin(2);
        fields.Bytes(1, entry.resource);
        for (const std::string& id : entry.ids)
          fields.Bytes(2, id);
        const size_t topology = fields.Begin(3);
        for (const int64_t id : entry.nodes) {
          const size_t node = fields.Begin(1);
          if (id != 0) fields.Number(1, static_cast<uint64_t>(id));
          fields.End(node);
        }
        fields.End(topology);
        fields.End(devices);
      }
      fields.End(container);
    }
    fields.End(all);
  }
  return out;
}

}  // namespace resmgr::test
