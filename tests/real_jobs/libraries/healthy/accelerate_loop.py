import torch
from accelerate import Accelerator
a = Accelerator(gradient_accumulation_steps=2)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=0.01)
ds = torch.utils.data.TensorDataset(torch.randn(37, 8))
dl = torch.utils.data.DataLoader(ds, batch_size=4, shuffle=True)
model, opt, dl = a.prepare(model, opt, dl)
for epoch in range(2):
    for (x,) in dl:
        with a.accumulate(model):
            loss = model(x).square().mean()
            a.backward(loss)
            a.clip_grad_norm_(model.parameters(), 1.0)
            opt.step(); opt.zero_grad()
    model.eval()
    seen = []
    for (x,) in dl:
        with torch.no_grad():
            seen.append(a.gather_for_metrics(model(x)))
    a.print("seen", sum(len(s) for s in seen), a.reduce(loss.detach(), "mean").shape)
    model.train()
a.wait_for_everyone()
a.end_training()
