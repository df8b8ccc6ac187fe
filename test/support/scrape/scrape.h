// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::test {

// The answer, headers included, of the HTTP server at this port of 127.0.0.1 to a request, which is
// sent as given. "" when there is no listener.
std::string Exchange(int port, const std::string& request);

// The same, for a GET of this path.
std::string Scrape(int port, const std::string& path = "/metrics");

}  // namespace resmgr::test
