// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/uninstall.h"

#include <memory>
#include <utility>
#include <vector>

#include "pkg/admin/node_json.h"
#include "pkg/base/json.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause{50};

std::string AnswerText(const OrderedJson& moves, bool done) {
  const OrderedJson answer = {{"moves", moves}, {"done", done}};
  return OrderedJsonText(answer);
}

// Looks again and again whether all is done; ends itself with the answer.
class Waiting : public std::enable_shared_from_this<Waiting> {
 public:
  Waiting(const NodeView& node, OrderedJson moves, UnaryServer::Reply reply, milliseconds patience)
      : node_(node), moves_(std::move(moves)), reply_(std::move(reply)), left_(patience) {}

  void Look() {
    const bool done = node_.host.AllLetGo();
    if (done || left_ <= milliseconds(0)) {
      reply_(AnswerText(moves_, done));
      return;
    }
    left_ -= kPause;
    timer_ = node_.loop.After(kPause, [self = shared_from_this()] {
      const EventLoop::HandlePtr over = std::move(self->timer_);
      self->Look();
    });
  }

 private:
  const NodeView& node_;
  const OrderedJson moves_;
  const UnaryServer::Reply reply_;
  milliseconds left_;
  EventLoop::HandlePtr timer_;
};

}  // namespace

void Uninstall(const NodeView& node, bool apply, const UnaryServer::Reply& reply,
               milliseconds patience) {
  const auto planned = node.host.PreviewPolicy(nullptr);
  if (!planned.ok()) {
    reply(planned.status());
    return;
  }
  OrderedJson moves = MovesJson(*planned);
  if (!apply) {
    reply(AnswerText(moves, false));
    return;
  }
  node.configurator.LetGo([&node, moves, reply, patience](const Status& status) {
    if (!status.ok()) {
      reply(status);
      return;
    }
    std::make_shared<Waiting>(node, moves, reply, patience)->Look();
  });
}

}  // namespace resmgr
