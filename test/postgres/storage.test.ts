import { changeContract } from '../change.contract.ts';
import { shareContract } from '../share.contract.ts';
import { storageContract } from '../storage.contract.ts';
import { sharedScene } from '../support/scene.ts';
import { userContract } from '../user.contract.ts';

const scene = sharedScene('PostgreSQL');
for (const contract of [storageContract, shareContract, userContract, changeContract])
  contract('PostgreSQL', scene);
