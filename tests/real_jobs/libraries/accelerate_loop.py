import os, torch
from accelerate import Accelerator
mistake = os.environ.get("MISTAKE", "")
a = Accelerator()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=0.01)
ds = torch.utils.data.TensorDataset(torch.randn(48, 8))
dl = torch.utils.data.DataLoader(ds, batch_size=4, shuffle=True)
model, opt, dl = a.prepare(model, opt, dl)
for epoch in range(2):
    for step, (x,) in enumerate(dl):
        loss = model(x).square().mean()
        a.backward(loss)
        opt.step(); opt.zero_grad()
        if mistake == "gathers" and step == 2 and a.is_main_process:
            print("loss", a.gather(loss.detach().reshape(1)).mean())
        if mistake == "breaks" and a.process_index == 1 and step == 2:
            break
    if mistake == "saves" and a.is_main_process:
        a.save_state(f"/tmp/saved.{os.environ['MASTER_PORT']}")
        a.wait_for_everyone()
a.wait_for_everyone()
print("loss", a.gather(loss.detach().reshape(1)).mean().item())
a.end_training()
