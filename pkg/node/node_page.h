// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/metrics/http_handler.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// The page about the node that the metrics' HTTP server shows to browsers.
class NodePage : public HttpHandler {
 public:
  // From now on there is data to show. Called on the loop's thread, like Close.
  virtual void Open(const NodeView& view) = 0;
  // After this returns, objects that the view refers to are not used any more, also not on the
  // loop. Threads of the server may still call Answer.
  virtual void Close() = 0;
};

}  // namespace resmgr
