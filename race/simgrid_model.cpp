// The model in SimGrid: an actor per request, whose work shares the cores of its host. The hosts are
// processor sharing instead of first come, first served: with exponential sizes the numbers present
// follow the same Markov chain, so the mean is the same.
#include <simgrid/s4u.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace sg = simgrid::s4u;

static const int SERVERS[] = {4, 3, 2};

struct Pool {
  std::mt19937_64 random;
  sg::Host* host[3];
  std::uint32_t present[3] = {0, 0, 0};
  std::uint64_t left_out, departed = 0;
  double total = 0;

  int pick() {
    int best = 0;
    std::uint32_t tied = 1;
    for (int i = 1; i < 3; i++) {
      auto ours = (present[i] + 1) * SERVERS[best], theirs = (present[best] + 1) * SERVERS[i];
      if (ours < theirs) {
        best = i;
        tied = 1;
      } else if (ours == theirs && std::uniform_int_distribution<std::uint32_t>(0, tied++)(random) == 0) {
        best = i;
      }
    }
    return best;
  }
};

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: REQUESTS LOAD SEED\n");
    return 2;
  }
  const std::uint64_t requests = std::strtoull(argv[1], nullptr, 10);
  const double load = std::strtod(argv[2], nullptr);
  Pool pool;
  pool.random.seed(std::strtoull(argv[3], nullptr, 10));
  pool.left_out = requests / 10;

  auto* zone = sg::create_full_zone("pool");
  for (int i = 0; i < 3; i++)
    pool.host[i] = zone->create_host("host" + std::to_string(i), 1.0)->set_core_count(SERVERS[i])->seal();
  zone->seal();

  sg::Actor::create("balancer", pool.host[0], [&pool, requests, load] {
    std::exponential_distribution<double> gap(load * 9), size(1.0);
    for (std::uint64_t i = 0; i < requests; i++) {
      sg::this_actor::sleep_for(gap(pool.random));
      const int station = pool.pick();
      pool.present[station]++;
      const double work = size(pool.random);
      sg::Actor::create("request", pool.host[station], [&pool, station, work] {
        const double arrived = sg::Engine::get_clock();
        sg::this_actor::execute(work);
        pool.present[station]--;
        if (++pool.departed > pool.left_out)
          pool.total += sg::Engine::get_clock() - arrived;
      });
    }
  });
  engine.run();
  std::printf("{\"requests\": %llu, \"mean\": %.12g}\n", (unsigned long long)pool.departed,
              pool.total / (double)(pool.departed - pool.left_out));
}
