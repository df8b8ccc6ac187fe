// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/metrics/http_handler.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// The page about the node that the HTTP server of the metrics shows to browsers.
class NodePage : public HttpHandler {
 public:
  // From now on there is something to show. Loop's thread only, as Close.
  virtual void Open(const NodeView& view) = 0;
  // When this returns nothing that the view refers to is used any more, the loop included. Threads
  // of the server may call Answer for longer.
  virtual void Close() = 0;
};

}  // namespace resmgr
