"""PyTorch-Ignite: idist.Parallel, auto_model, and a metric that is reduced over all ranks."""

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events
from ignite.metrics import Average


def training(local_rank, steps):
    model = idist.auto_model(torch.nn.Linear(4, 1))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.01))

    def update(engine, batch):
        optimizer.zero_grad()
        loss = model(batch.to(idist.device())).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    engine = Engine(update)
    Average().attach(engine, "loss")
    engine.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: idist.barrier())
    engine.run([torch.ones(2, 4)] * steps, max_epochs=2)


if __name__ == "__main__":
    with idist.Parallel(backend="gloo") as parallel:
        parallel.run(training, 3)
